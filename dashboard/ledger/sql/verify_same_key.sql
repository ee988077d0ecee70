-- Attempts whose key is not the send's, nor that of the batch they went in; that repeated an attempt in doubt under another
-- key, in another call, on another account or at another endpoint without a person's word; and batches that were no one call.
-- Empty: the invariant holds.
select send_id, format('attempt %%s carried the key %%s instead of the id of the %%s', n, idempotency_key,
    case when batch is null then 'send' else 'batch' end) as what
from sendonce.attempts where idempotency_key <> coalesce(batch, send_id)::text
union all
select r.send_id, format('attempt %%s repeated attempt %%s, which was in doubt, %%s', r.n, e.n,
    case when e.account_id <> r.account_id then 'on another account' when e.endpoint <> r.endpoint then 'at another endpoint'
      when e.batch is distinct from r.batch then 'and not as the same call' else 'under another key' end)
from sendonce.attempts r
join sendonce.attempts e on e.send_id = r.send_id and e.n < r.n and e.status in ('ambiguous', 'accepted')
where r.n > 1 and (e.account_id <> r.account_id or e.endpoint <> r.endpoint or e.batch is distinct from r.batch
    or e.idempotency_key is distinct from r.idempotency_key)
  and not exists (
    select from sendonce.moves m
    where m.send_id = r.send_id and m.move = 'release' and m.made_by = 'person' and m.attempt = r.n - 1)
union all
-- All members of a call are written ahead in one transaction, and no call is made again.
select min(send_id::text)::uuid, format('batch %%s is no one call: its members do not share %%s', batch, concat_ws(', ',
    case when count(distinct account_id) > 1 then 'the account' end,
    case when count(distinct endpoint) > 1 then 'the endpoint' end,
    case when count(distinct coalesce(idempotency_key, '')) > 1 then 'the key' end,
    case when count(distinct worker) > 1 then 'the worker' end,
    case when count(distinct started_at) > 1 then 'the time' end))
from sendonce.attempts where batch is not null
group by batch
having count(distinct account_id) > 1 or count(distinct endpoint) > 1 or count(distinct coalesce(idempotency_key, '')) > 1
  or count(distinct worker) > 1 or count(distinct started_at) > 1
limit %(limit)s::int
