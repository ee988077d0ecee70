-- Count these buckets (workspace, mailstream, minute) from the ledger; one in which nothing happened gets no row. Each
-- minute is read once, by a range of the block-range index of its time, for all mailstreams together.
with bucket as (
  select distinct * from unnest(%(workspace_id)b::uuid[], %(mailstream)b::text[], %(minute)b::timestamptz[])
    b (workspace_id, mailstream, minute)
), span as (
  select distinct minute, minute + interval '1 minute' as "end" from bucket
), recorded as (
  select s.workspace_id, s.mailstream, m.minute, s.n as recorded
  from span m cross join lateral (
    select s.workspace_id, s.mailstream, count(*) as n from sendonce.sends s
    where s.recorded_at >= m.minute and s.recorded_at < m."end"
    group by s.workspace_id, s.mailstream) s
), due as (
  select s.workspace_id, s.mailstream, m.minute, s.due, s.due_accepted, s.due_stopped
  from span m cross join lateral (
    select s.workspace_id, s.mailstream, count(*) as due, count(*) filter (where s.state = 'accepted') as due_accepted,
      count(*) filter (where s.state in ('suppressed', 'cancelled')) as due_stopped
    from sendonce.sends s
    where s.due_at >= m.minute and s.due_at < m."end"
    group by s.workspace_id, s.mailstream) s
), later as (
  select d.workspace_id, d.mailstream, m.minute, d.duplicate, d.in_progress, d.mismatch
  from span m cross join lateral (
    select d.workspace_id, d.mailstream, count(*) filter (where d.verdict = 'duplicate') as duplicate,
      count(*) filter (where d.verdict = 'in_progress') as in_progress,
      count(*) filter (where d.verdict = 'mismatch') as mismatch
    from sendonce.duplicates d
    where d.at >= m.minute and d.at < m."end"
    group by d.workspace_id, d.mailstream) d
), tried as (
  select a.workspace_id, a.mailstream, m.minute, a.attempts, a.accepted, a.rejected, a.ambiguous
  from span m cross join lateral (
    select a.workspace_id, a.mailstream, count(*) as attempts, count(*) filter (where a.status = 'accepted') as accepted,
      count(*) filter (where a.status = 'rejected') as rejected,
      count(*) filter (where a.status = 'ambiguous') as ambiguous
    from sendonce.attempts a
    where a.started_at >= m.minute and a.started_at < m."end"
    group by a.workspace_id, a.mailstream) a
), doubted as (
  select a.workspace_id, a.mailstream, m.minute, a.doubted
  from span m cross join lateral (
    select a.workspace_id, a.mailstream, count(*) as doubted from sendonce.attempts a
    where a.doubted_at >= m.minute and a.doubted_at < m."end"
    group by a.workspace_id, a.mailstream) a
), heard as (
  select e.workspace_id, e.mailstream, m.minute, e.delivered, e.bounced, e.complained, e.repeats
  from span m cross join lateral (
    select e.workspace_id, s.mailstream, count(*) filter (where e.event_type = 'delivered') as delivered,
      count(*) filter (where e.event_type = 'bounced') as bounced,
      count(*) filter (where e.event_type = 'complained') as complained, sum(e.repeats + e.other_ids) as repeats
    from sendonce.events e join sendonce.sends s on s.id = e.send_id
    where e.received_at >= m.minute and e.received_at < m."end"
    group by e.workspace_id, s.mailstream) e
), swept as (
  select h.workspace_id, h.mailstream, m.minute, h.stale
  from span m cross join lateral (
    select h.workspace_id, s.mailstream, count(*) as stale
    from sendonce.moves h join sendonce.sends s on s.id = h.send_id
    where h.at >= m.minute and h.at < m."end" and h.made_by = 'sweep'
    group by h.workspace_id, s.mailstream) h
)
insert into sendonce.rollups (workspace_id, mailstream, minute, recorded, duplicate, in_progress, mismatch, due, due_accepted,
  due_stopped, attempts, attempts_accepted, attempts_rejected, attempts_ambiguous, doubted, delivered, bounced, complained,
  event_repeats, stale_claims)
select b.workspace_id, b.mailstream, b.minute, coalesce(r.recorded, 0), coalesce(l.duplicate, 0), coalesce(l.in_progress, 0),
  coalesce(l.mismatch, 0), coalesce(d.due, 0), coalesce(d.due_accepted, 0), coalesce(d.due_stopped, 0),
  coalesce(t.attempts, 0), coalesce(t.accepted, 0), coalesce(t.rejected, 0), coalesce(t.ambiguous, 0),
  coalesce(a.doubted, 0), coalesce(e.delivered, 0), coalesce(e.bounced, 0), coalesce(e.complained, 0),
  coalesce(e.repeats, 0), coalesce(h.stale, 0)
from bucket b
left join recorded r using (workspace_id, mailstream, minute)
left join due d using (workspace_id, mailstream, minute)
left join later l using (workspace_id, mailstream, minute)
left join tried t using (workspace_id, mailstream, minute)
left join doubted a using (workspace_id, mailstream, minute)
left join heard e using (workspace_id, mailstream, minute)
left join swept h using (workspace_id, mailstream, minute)
where coalesce(r.recorded, d.due, l.duplicate, t.attempts, a.doubted, e.delivered, h.stale) is not null
