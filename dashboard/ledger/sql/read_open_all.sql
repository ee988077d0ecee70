-- What is open in each mailstream, by state, for a scrape: how many, for how many seconds the first has waited (not
-- what is not due yet), and how many claims are past their lease. Each part walks an index and stops after so many rows.
select q.workspace_id, m.name as mailstream, q.state::text as state, count(*) as number,
  coalesce(extract(epoch from now() - min(q.since)), 0)::float8 as age, count(*) filter (where q.stale) as stale
from sendonce.mailstreams m
cross join lateral (
  (select w.workspace_id, w.state, case when w.state = 'pending' and w.claim_at <= now() then w.claim_at end as since,
     coalesce(w.lease_until < now(), false) as stale
   from sendonce.work w
   where w.mail_class = m.mail_class and w.workspace_id = m.workspace_id and w.mailstream = m.name
     and w.claim_at is not null
   order by w.claim_at limit %(counted)s::int)
) q
group by q.workspace_id, m.name, q.state
union all
select w.id, u.mailstream, 'unknown', count(*), extract(epoch from now() - min(u.unknown_since))::float8, 0
from sendonce.workspaces w
cross join lateral (
  select mailstream, unknown_since from sendonce.work
  where workspace_id = w.id and unknown_since is not null
  order by unknown_since limit %(counted)s::int) u
group by w.id, u.mailstream
union all
select w.id, h.mailstream, 'held', count(*), extract(epoch from now() - min(h.opened_at))::float8, 0
from sendonce.workspaces w
cross join lateral (
  select mailstream, opened_at from sendonce.holds
  where workspace_id = w.id and closed_at is null
  order by opened_at limit %(counted)s::int) h
group by w.id, h.mailstream
