-- The later deliveries of each of these sends, oldest first: of very many, half of the limit from the beginning and half
-- from the end. No row: its key arrived once.
select d.send_id, d.id, d.source, d.trigger_type, d.trigger_id, d.triggered_at, d.worker, d.at,
       d.state_met::text as state_met, d.verdict::text as verdict, d.difference
  from unnest(%(send_ids)s::uuid[]) asked (send_id)
 cross join lateral ((select f.id from sendonce.duplicates f
                       where f.send_id = asked.send_id order by f.at, f.id limit %(limit)s::int / 2)
                     union (select l.id from sendonce.duplicates l
                       where l.send_id = asked.send_id order by l.at desc, l.id desc limit %(limit)s::int / 2)) ends
  join sendonce.duplicates d on d.id = ends.id and d.workspace_id = any(%(workspace_ids)s::uuid[])
 order by d.at, d.id
