-- The workers that claimed, tried or met any of these sends. No row: none did, or their rows are gone.
select k.id, k.name, k.version, k.started_at, k.heartbeat_at, k.stopped_at
  from sendonce.workers k
 where k.id in (
       select t.worker from sendonce.attempts t where t.send_id = any(%(send_ids)s::uuid[])
        union select w.claimed_by from sendonce.work w where w.send_id = any(%(send_ids)s::uuid[])
        union select met.worker
                from unnest(%(send_ids)s::uuid[]) asked (send_id),
                     lateral ((select v.worker from sendonce.moves v where v.send_id = asked.send_id
                                order by v.at limit %(limit)s::int)
                              union (select d.worker from sendonce.duplicates d where d.send_id = asked.send_id
                                      order by d.at limit %(limit)s::int)) met)
