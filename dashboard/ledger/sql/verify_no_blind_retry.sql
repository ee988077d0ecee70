-- Attempts that rule G forbade, and open sends whose doubt was forgotten. Empty: the invariant holds.
-- The history says which attempt each move came after, so no clock is compared but that of the key's window.
with retry as (
  select r.send_id, r.n, r.submit_deadline, r.account_id,
    bool_or(e.status = 'submitting' or e.finished_at > r.started_at) as still_open,
    coalesce(bool_or(e.status in ('ambiguous', 'accepted')), false) as in_doubt,
    coalesce(bool_or(e.status in ('ambiguous', 'accepted') and e.batch is not null), false) as in_a_batch,
    min(e.started_at) filter (where e.status in ('ambiguous', 'accepted')) as doubt_began
  from sendonce.attempts r join sendonce.attempts e on e.send_id = r.send_id and e.n < r.n
  where r.n > 1
  group by r.send_id, r.n
), allowed as (
  select r.*, m.reopened, m.by_person, m.by_key
  from retry r cross join lateral (
    select coalesce(bool_or(m.to_state = 'pending'), false) as reopened,
      coalesce(bool_or(m.move = 'release' and m.made_by = 'person'), false) as by_person,
      coalesce(bool_or(m.move = 'release' and m.made_by = 'reconcile' and m.reason = 'released_by_key'), false) as by_key
    from sendonce.moves m
    where m.send_id = r.send_id and (m.attempt = r.n - 1 or m.move = 'replay')) m
)
select send_id, format('attempt %%s was started while an earlier one was open', n) as what from allowed where still_open
union all
select send_id, format('attempt %%s was started although nothing had made the send pending again', n)
from allowed where not reopened
union all
select send_id, format('attempt %%s was started while an earlier one was in doubt, without a release', n)
from allowed where in_doubt and not by_person and not by_key
union all
select send_id, format('attempt %%s was released by its key, and what was in doubt went in a batch', n)
from allowed where in_a_batch and by_key and not by_person
union all
select r.send_id, format('attempt %%s was allowed to start after the provider had forgotten the key', r.n)
from allowed r join sendonce.accounts a on a.id = r.account_id
where r.in_doubt and r.by_key and not r.by_person and r.submit_deadline > r.doubt_began + a.key_window
union all
select w.send_id, format('attempt %%s is in doubt, and the work row does not know it', a.n)
from sendonce.work w join sendonce.attempts a on a.send_id = w.send_id
where w.ambiguous_since is null and a.status = 'ambiguous'
limit %(limit)s::int
