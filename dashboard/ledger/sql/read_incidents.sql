-- The held sends of a workspace that have waited longest, grouped by what went wrong: the greatest groups first.
-- No row: nothing is held.
with held as (
  select send_id, mailstream, reason, opened_at from sendonce.holds
  where workspace_id = %(workspace_id)s::uuid and closed_at is null
  order by opened_at
  limit %(counted)s::int
)
select a.name, a.provider, h.reason, t.error_class, count(*), min(h.opened_at), max(h.opened_at),
  array_agg(distinct h.mailstream order by h.mailstream)
from held h
join sendonce.work w on w.send_id = h.send_id and w.state = 'held'
join sendonce.mailstreams m on m.workspace_id = w.workspace_id and m.name = w.mailstream
join sendonce.accounts a on a.id = coalesce(w.account_id, m.account_id)
left join sendonce.attempts t on t.send_id = h.send_id and t.n = w.last_attempt
group by a.name, a.provider, h.reason, t.error_class
order by count(*) desc, min(h.opened_at)
limit %(limit)s::int
