-- Attempts whose key is not the send's, or that repeated an attempt in doubt under another key, on another account or
-- at another endpoint without a person's word. Empty: the invariant holds.
select send_id, format('attempt %%s carried the key %%s instead of the id of the send', n, idempotency_key) as what
from sendonce.attempts where idempotency_key <> send_id::text
union all
select r.send_id, format('attempt %%s repeated attempt %%s, which was in doubt, %%s', r.n, e.n,
    case when e.account_id <> r.account_id then 'on another account' when e.endpoint <> r.endpoint then 'at another endpoint'
      else 'under another key' end)
from sendonce.attempts r
join sendonce.attempts e on e.send_id = r.send_id and e.n < r.n and e.status in ('ambiguous', 'accepted')
where r.n > 1 and (e.account_id <> r.account_id or e.endpoint <> r.endpoint
    or e.idempotency_key is distinct from r.idempotency_key)
  and not exists (
    select from sendonce.moves m
    where m.send_id = r.send_id and m.move = 'release' and m.made_by = 'person' and m.attempt = r.n - 1)
limit %(limit)s::int
