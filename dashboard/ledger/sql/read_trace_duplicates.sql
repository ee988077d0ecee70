-- The later deliveries of a send, oldest first, up to a limit. No row: its key arrived once.
select id, source, trigger_type, trigger_id, triggered_at, worker, at, state_met::text as state_met,
       verdict::text as verdict, difference
  from sendonce.duplicates
 where send_id = %(send_id)s::uuid and workspace_id = %(workspace_id)s::uuid
 order by at, id
 limit %(limit)s::int
