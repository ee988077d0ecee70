-- Sum up the minutes of these buckets (workspace, mailstream, hour).
with bucket as (
  select distinct * from unnest(%(workspace_id)b::uuid[], %(mailstream)b::text[], %(hour)b::timestamptz[])
    b (workspace_id, mailstream, hour)
), timed as (
  insert into sendonce.latency_hours (workspace_id, mailstream, minute, account_id, source, measure, step, number)
  select b.workspace_id, b.mailstream, b.hour, l.account_id, l.source, l.measure, l.step, sum(l.number)
  from bucket b join sendonce.latencies l on l.workspace_id = b.workspace_id and l.mailstream = b.mailstream
    and l.minute >= b.hour and l.minute < b.hour + interval '1 hour'
  group by 1, 2, 3, 4, 5, 6, 7
)
insert into sendonce.rollup_hours (workspace_id, mailstream, minute, account_id, source,
  recorded, duplicate, in_progress, mismatch, due, due_accepted, due_stopped, claims, attempts, attempts_accepted,
  attempts_rejected, attempts_ambiguous, attempts_abandoned, doubted, held, delivered, bounced, complained, event_repeats, stale_claims)
select b.workspace_id, b.mailstream, b.hour, r.account_id, r.source,
  sum(r.recorded), sum(r.duplicate), sum(r.in_progress), sum(r.mismatch), sum(r.due),
  sum(r.due_accepted), sum(r.due_stopped), sum(r.claims), sum(r.attempts), sum(r.attempts_accepted),
  sum(r.attempts_rejected), sum(r.attempts_ambiguous), sum(r.attempts_abandoned), sum(r.doubted), sum(r.held),
  sum(r.delivered), sum(r.bounced), sum(r.complained), sum(r.event_repeats), sum(r.stale_claims)
from bucket b join sendonce.rollups r on r.workspace_id = b.workspace_id and r.mailstream = b.mailstream
  and r.minute >= b.hour and r.minute < b.hour + interval '1 hour'
group by 1, 2, 3, 4, 5
