-- Count these buckets (workspace, mailstream, minute) from the ledger, by account and source; one in which nothing happened
-- gets no row. Each minute is read once, by a range of the block-range index of its time, for all mailstreams together.
with bucket as (
  select distinct * from unnest(%(workspace_id)b::uuid[], %(mailstream)b::text[], %(minute)b::timestamptz[])
    b (workspace_id, mailstream, minute)
), span as (
  select distinct minute, minute + interval '1 minute' as "end" from bucket
), recorded as (
  select s.workspace_id, s.mailstream, s.source, m.minute, count(*) as recorded
  from span m join sendonce.sends s on s.recorded_at >= m.minute and s.recorded_at < m."end"
  group by 1, 2, 3, 4
), due as (
  select s.workspace_id, s.mailstream, s.source, m.minute, count(*) as due, count(*) filter (where s.state = 'accepted') as accepted,
    count(*) filter (where s.state in ('suppressed', 'cancelled')) as stopped
  from span m join sendonce.sends s on s.due_at >= m.minute and s.due_at < m."end"
  group by 1, 2, 3, 4
), later as (
  select d.workspace_id, d.mailstream, d.source, m.minute, count(*) filter (where d.verdict = 'duplicate') as duplicate,
    count(*) filter (where d.verdict = 'in_progress') as in_progress, count(*) filter (where d.verdict = 'mismatch') as mismatch
  from span m join sendonce.duplicates d on d.at >= m.minute and d.at < m."end"
  group by 1, 2, 3, 4
), tried as (
  select a.workspace_id, a.mailstream, a.account_id, s.source, m.minute, count(*) as attempts,
    count(*) filter (where a.status = 'accepted') as accepted, count(*) filter (where a.status = 'rejected') as rejected,
    count(*) filter (where a.status = 'ambiguous') as ambiguous, count(*) filter (where a.status = 'abandoned') as abandoned
  from span m join sendonce.attempts a on a.started_at >= m.minute and a.started_at < m."end"
  join sendonce.sends s on s.id = a.send_id
  group by 1, 2, 3, 4, 5
), doubted as (
  select a.workspace_id, a.mailstream, a.account_id, s.source, m.minute, count(*) as doubted
  from span m join sendonce.attempts a on a.doubted_at >= m.minute and a.doubted_at < m."end"
  join sendonce.sends s on s.id = a.send_id
  group by 1, 2, 3, 4, 5
), heard as (
  select e.workspace_id, s.mailstream, e.account_id, s.source, m.minute, count(*) filter (where e.event_type = 'delivered') as delivered,
    count(*) filter (where e.event_type = 'bounced') as bounced, count(*) filter (where e.event_type = 'complained') as complained,
    sum(e.repeats + e.other_ids) as repeats
  -- In the minute in which it happened; where that lies ahead of when it came, the provider's clock is wrong.
  from span m join sendonce.events e on e.occurred_at >= m.minute and e.occurred_at < m."end" and e.occurred_at <= e.received_at
    or e.received_at >= m.minute and e.received_at < m."end" and e.occurred_at > e.received_at
  join sendonce.sends s on s.id = e.send_id
  group by 1, 2, 3, 4, 5
), moved as (
  -- A claim that came to an attempt counts with that; one that did not, in the minute in which it ended.
  select h.workspace_id, s.mailstream, coalesce(a.account_id, %(nobody)s::uuid) as account_id, s.source, m.minute,
    count(*) filter (where h.made_by = 'sweep') as stale, count(*) filter (where h.to_state = 'held') as held,
    count(*) filter (where h.from_state = 'claimed' and a.claim_number is distinct from h.claim_number) as claims
  from span m join sendonce.moves h on h.at >= m.minute and h.at < m."end"
  join sendonce.sends s on s.id = h.send_id
  left join sendonce.attempts a on a.send_id = h.send_id and a.n = h.attempt
  group by 1, 2, 3, 4, 5
), figure as (
  select workspace_id, mailstream, %(nobody)s::uuid as account_id, source, minute, name, number
  from (
    select workspace_id, mailstream, source, minute, 'recorded' as name, recorded as number from recorded
    union all select workspace_id, mailstream, source, minute, v.name, v.number from due
      cross join lateral (values ('due', due), ('due_accepted', accepted), ('due_stopped', stopped)) v (name, number)
    union all select workspace_id, mailstream, source, minute, v.name, v.number from later
      cross join lateral (values ('duplicate', duplicate), ('in_progress', in_progress), ('mismatch', mismatch)) v (name, number)
  ) asked
  union all select workspace_id, mailstream, account_id, source, minute, v.name, v.number from tried
    cross join lateral (values ('claims', attempts), ('attempts', attempts), ('attempts_accepted', accepted), ('attempts_rejected', rejected),
      ('attempts_ambiguous', ambiguous), ('attempts_abandoned', abandoned)) v (name, number)
  union all select workspace_id, mailstream, account_id, source, minute, 'doubted', doubted from doubted
  union all select workspace_id, mailstream, account_id, source, minute, v.name, v.number from heard
    cross join lateral (values ('delivered', delivered), ('bounced', bounced), ('complained', complained), ('event_repeats', repeats)) v (name, number)
  union all select workspace_id, mailstream, account_id, source, minute, v.name, v.number from moved
    cross join lateral (values ('stale_claims', stale), ('held', held), ('claims', claims)) v (name, number)
)
insert into sendonce.rollups (workspace_id, mailstream, minute, account_id, source,
  recorded, duplicate, in_progress, mismatch, due, due_accepted, due_stopped, claims, attempts, attempts_accepted,
  attempts_rejected, attempts_ambiguous, attempts_abandoned, doubted, held, delivered, bounced, complained, event_repeats, stale_claims)
select f.workspace_id, f.mailstream, f.minute, f.account_id, f.source,
  coalesce(sum(number) filter (where name = 'recorded'), 0), coalesce(sum(number) filter (where name = 'duplicate'), 0),
  coalesce(sum(number) filter (where name = 'in_progress'), 0), coalesce(sum(number) filter (where name = 'mismatch'), 0),
  coalesce(sum(number) filter (where name = 'due'), 0), coalesce(sum(number) filter (where name = 'due_accepted'), 0),
  coalesce(sum(number) filter (where name = 'due_stopped'), 0), coalesce(sum(number) filter (where name = 'claims'), 0),
  coalesce(sum(number) filter (where name = 'attempts'), 0), coalesce(sum(number) filter (where name = 'attempts_accepted'), 0),
  coalesce(sum(number) filter (where name = 'attempts_rejected'), 0), coalesce(sum(number) filter (where name = 'attempts_ambiguous'), 0),
  coalesce(sum(number) filter (where name = 'attempts_abandoned'), 0), coalesce(sum(number) filter (where name = 'doubted'), 0),
  coalesce(sum(number) filter (where name = 'held'), 0), coalesce(sum(number) filter (where name = 'delivered'), 0),
  coalesce(sum(number) filter (where name = 'bounced'), 0), coalesce(sum(number) filter (where name = 'complained'), 0),
  coalesce(sum(number) filter (where name = 'event_repeats'), 0), coalesce(sum(number) filter (where name = 'stale_claims'), 0)
from figure f join bucket b on b.workspace_id = f.workspace_id and b.mailstream = f.mailstream and b.minute = f.minute
where f.number > 0
group by f.workspace_id, f.mailstream, f.minute, f.account_id, f.source
