-- A page of the later deliveries of a send, oldest first, behind (time, id). No row: that was all.
select d.id, d.source, d.trigger_type, d.trigger_id, d.triggered_at, d.worker, d.at, d.state_met::text as state_met,
       d.verdict::text as verdict, d.difference
  from sendonce.duplicates d
 where d.send_id = %(send_id)s::uuid and d.workspace_id = %(workspace_id)s::uuid
   and (d.at, d.id) > (%(after_at)s::timestamptz, %(after_id)s::bigint)
 order by d.at, d.id
 limit %(limit)s::int
