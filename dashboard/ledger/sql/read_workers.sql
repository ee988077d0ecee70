-- Workers that beat within the last day, those that run first. No row: no worker ran for a day.
select id, name, version, loops, started_at, heartbeat_at, stopped_at, in_flight, refused_moves, loop_ages,
       case when stopped_at is not null then 'stopped'
            when heartbeat_at < now() - %(silence)s::interval then 'lost'
            when drain_asked_at is not null then 'draining'
            else 'running' end as state
  from sendonce.workers
 where heartbeat_at > now() - interval '1 day'
 order by stopped_at is not null, heartbeat_at < now() - %(silence)s::interval, heartbeat_at desc, id
 limit %(limit)s::int
