-- Attempts that cannot have been written ahead under a claim that was current. Empty: the invariant holds.
with numbered as (
  select a.send_id, a.n, a.claim_number, a.claimed_at, a.started_at, a.submit_deadline, a.request_deadline,
    row_number() over by_number as place, lag(a.claim_number) over by_number as claim_before
  from sendonce.attempts a
  window by_number as (partition by a.send_id order by a.n)
), counted as (
  select send_id, max(n) as attempts, max(claim_number) as claim from numbered group by send_id
), opened as (
  select send_id, n from sendonce.attempts where status = 'submitting'
), counting as (
  select send_id, open_attempt as n from sendonce.work where open_attempt is not null
)
select send_id, format('there is no attempt %%s before attempt %%s', place, n) as what from numbered where n <> place
union all
select send_id, format('attempt %%s was started under claim %%s, which an earlier attempt had used up', n, claim_number)
from numbered where claim_number <= claim_before
union all
select send_id, format('attempt %%s was not started within its claim and deadlines', n)
from numbered where started_at < claimed_at or started_at > submit_deadline or submit_deadline > request_deadline
union all
select coalesce(o.send_id, c.send_id), case when o.n is null
    then format('attempt %%s is open by the work row, but not by its own', c.n)
    else format('attempt %%s is open, but not by the work row', o.n) end
from opened o full join counting c on c.send_id = o.send_id and c.n = o.n
where o.n is null or c.n is null
union all
select s.id, format('the ledger counts %%s attempts, and there are %%s', coalesce(w.last_attempt, s.last_attempt),
    coalesce(c.attempts, 0))
from sendonce.sends s
left join sendonce.work w on w.send_id = s.id
left join counted c on c.send_id = s.id
where coalesce(w.last_attempt, s.last_attempt) <> coalesce(c.attempts, 0)
union all
select s.id, format('attempt %%s was started under claim %%s, and the ledger knows claims up to %%s', c.attempts, c.claim,
    coalesce(w.claim_number, s.last_claim))
from sendonce.sends s
left join sendonce.work w on w.send_id = s.id
join counted c on c.send_id = s.id
where coalesce(w.claim_number, s.last_claim) < c.claim
limit %(limit)s::int
