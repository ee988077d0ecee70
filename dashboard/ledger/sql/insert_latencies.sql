-- Count how long things took in these buckets (workspace, mailstream, minute), by account and source. What each measure is
-- stands in latency.py; no time is taken from anybody else's clock but the moment of a delivery.
with bucket as (
  select distinct * from unnest(%(workspace_id)b::uuid[], %(mailstream)b::text[], %(minute)b::timestamptz[])
    b (workspace_id, mailstream, minute)
), span as (
  select distinct minute, minute + interval '1 minute' as "end" from bucket
), timed as (
  select s.workspace_id, s.mailstream, m.minute, %(nobody)s::uuid as account_id, s.source, 'outbox' as measure,
    s.recorded_at - s.asked_at as took
  from span m join sendonce.sends s on s.recorded_at >= m.minute and s.recorded_at < m."end"
  where s.outbox_id is not null
  union all
  select s.workspace_id, s.mailstream, m.minute, coalesce(s.account_id, %(nobody)s::uuid), s.source, 'acceptance', s.settled_at - s.due_at
  from span m join sendonce.sends s on s.due_at >= m.minute and s.due_at < m."end"
  where s.state = 'accepted' and s.reason = 'answered'
  union all
  select a.workspace_id, a.mailstream, m.minute, a.account_id, s.source, 'attempt', a.duration_ms * interval '1 millisecond'
  from span m join sendonce.attempts a on a.started_at >= m.minute and a.started_at < m."end"
  join sendonce.sends s on s.id = a.send_id
  where a.duration_ms is not null
  union all
  select e.workspace_id, s.mailstream, m.minute, e.account_id, s.source, 'delivery', e.occurred_at - s.settled_at
  from span m join sendonce.events e on e.occurred_at >= m.minute and e.occurred_at < m."end" and e.occurred_at <= e.received_at
  join sendonce.sends s on s.id = e.send_id
  where e.event_type = 'delivered' and s.state = 'accepted' and s.reason = 'answered'
)
insert into sendonce.latencies (workspace_id, mailstream, minute, account_id, source, measure, step, number)
select t.workspace_id, t.mailstream, t.minute, t.account_id, t.source, t.measure,
  width_bucket(greatest(extract(epoch from t.took) * 1000, 0)::float8, %(bounds)b::float8[]), count(*)
from timed t join bucket b on b.workspace_id = t.workspace_id and b.mailstream = t.mailstream and b.minute = t.minute
group by 1, 2, 3, 4, 5, 6, 7
