-- The later deliveries of each of these sends, oldest first, up to a limit for each. No row: its key arrived once.
select later.*
  from unnest(%(send_ids)s::uuid[]) asked (send_id),
       lateral (select d.send_id, d.id, d.source, d.trigger_type, d.trigger_id, d.triggered_at, d.worker, d.at,
                       d.state_met::text as state_met, d.verdict::text as verdict, d.difference
                  from sendonce.duplicates d
                 where d.send_id = asked.send_id and d.workspace_id = any(%(workspace_ids)s::uuid[])
                 order by d.at, d.id
                 limit %(limit)s::int) later
 order by later.at, later.id
