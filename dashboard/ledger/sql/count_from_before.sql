-- What was asked for before a moment and is not settled. Always one row.
select
  (select count(*) from sendonce.outbox where asked_at < %(before)s::timestamptz) as outbox,
  count(*) filter (where w.state = 'pending') as pending, count(*) filter (where w.state = 'claimed') as claimed,
  count(*) filter (where w.state = 'unknown') as unknown, count(*) filter (where w.state = 'held') as held,
  count(*) filter (where w.ambiguous_since is not null or w.open_attempt is not null) as in_doubt
from sendonce.work w join sendonce.sends s on s.id = w.send_id
where s.asked_at < %(before)s::timestamptz
