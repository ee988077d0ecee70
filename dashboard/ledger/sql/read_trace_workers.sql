-- The workers that claimed, tried or met a send. No row: none did, or their rows are gone.
select k.id, k.name, k.version, k.started_at, k.heartbeat_at, k.stopped_at
  from sendonce.workers k
 where k.id in (
       select t.worker from sendonce.attempts t where t.send_id = %(send_id)s::uuid
        union select w.claimed_by from sendonce.work w where w.send_id = %(send_id)s::uuid
        union (select v.worker from sendonce.moves v where v.send_id = %(send_id)s::uuid order by v.at limit %(limit)s::int)
        union (select d.worker from sendonce.duplicates d where d.send_id = %(send_id)s::uuid order by d.at limit %(limit)s::int))
