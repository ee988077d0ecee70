-- The workers that claimed, tried or met any of these sends, as far as their rows are read. No row: none did, or their
-- rows are gone.
select k.id, k.name, k.version, k.started_at, k.heartbeat_at, k.stopped_at
  from sendonce.workers k
 where k.id in (
       select t.worker from sendonce.attempts t where t.send_id = any(%(send_ids)s::uuid[])
        union select w.claimed_by from sendonce.work w where w.send_id = any(%(send_ids)s::uuid[])
        union select met.worker
                from unnest(%(send_ids)s::uuid[]) asked (send_id),
                     lateral ((select v.worker from sendonce.moves v where v.send_id = asked.send_id
                                order by v.at, v.id limit %(limit)s::int / 2)
                              union (select v.worker from sendonce.moves v where v.send_id = asked.send_id
                                      order by v.at desc, v.id desc limit %(limit)s::int / 2)
                              union (select d.worker from sendonce.duplicates d where d.send_id = asked.send_id
                                      order by d.at, d.id limit %(limit)s::int / 2)
                              union (select d.worker from sendonce.duplicates d where d.send_id = asked.send_id
                                      order by d.at desc, d.id desc limit %(limit)s::int / 2)) met)
