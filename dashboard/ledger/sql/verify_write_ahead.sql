-- Attempts that cannot have been written ahead under a claim that was current. Empty: the invariant holds.
with counted as (
  select send_id, max(n) as last, count(*) as number, max(claim_number) as claim from sendonce.attempts group by send_id
), opened as (
  select send_id, n from sendonce.attempts where status = 'submitting'
), counting as (
  select send_id, open_attempt as n from sendonce.work where open_attempt is not null
), known as (
  select s.id, coalesce(w.last_attempt, s.last_attempt) as last, coalesce(w.claim_number, s.last_claim) as claim
  from sendonce.sends s left join sendonce.work w on w.send_id = s.id
)
select coalesce(k.id, c.send_id) as send_id, case
    when c.number <> c.last then format('attempts are numbered up to %%s, and there are %%s', c.last, c.number)
    when k.last <> coalesce(c.last, 0) then format('the ledger counts %%s attempts, and there are %%s', k.last, coalesce(c.last, 0))
    else format('attempt %%s was started under claim %%s, and the ledger knows claims up to %%s', c.last, c.claim, k.claim)
  end as what
from known k full join counted c on c.send_id = k.id
where c.number <> c.last or k.last <> coalesce(c.last, 0) or k.claim < c.claim
union all
select r.send_id, format('attempt %%s was started under claim %%s, which an earlier attempt had used up', r.n, r.claim_number)
from sendonce.attempts r join sendonce.attempts e on e.send_id = r.send_id and e.n = r.n - 1
where r.n > 1 and r.claim_number <= e.claim_number
union all
select send_id, format('attempt %%s was not started within its claim and deadlines', n)
from sendonce.attempts
where started_at < claimed_at or started_at > submit_deadline or submit_deadline > request_deadline
union all
select coalesce(o.send_id, c.send_id), case when o.n is null
    then format('attempt %%s is open by the work row, but not by its own', c.n)
    else format('attempt %%s is open, but not by the work row', o.n) end
from opened o full join counting c on c.send_id = o.send_id and c.n = o.n
where o.n is null or c.n is null
limit %(limit)s::int
