-- Take up to N rate tokens of one account; the bucket holds one second's worth. Returns how many
-- were taken, and the rate.
with rate as (
  select a.id, a.rate_per_second as rate from sendonce.accounts a where a.id = %(account_id)s::uuid
), bucket as (
  select t.account_id, r.rate,
    least(greatest(r.rate, 1), t.tokens + r.rate * greatest(extract(epoch from clock_timestamp() - t.refilled_at), 0)) as tokens
  from sendonce.account_tokens t join rate r on r.id = t.account_id
  for update of t
), taken as (
  update sendonce.account_tokens t
  set tokens = b.tokens - least(floor(b.tokens), %(wanted)s::int), refilled_at = clock_timestamp()
  from bucket b where t.account_id = b.account_id
  returning least(floor(b.tokens), %(wanted)s::int)::int, b.rate
)
select * from taken
