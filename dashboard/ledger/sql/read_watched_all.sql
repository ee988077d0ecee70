-- What waits before and beside the ledger in each workspace, for a scrape: from the outbox and the dead letters.
with waiting as (
  select o.workspace_id, count(*) as rows, min(o.asked_at) as oldest
  from (select workspace_id, asked_at from sendonce.outbox order by position limit %(counted)s::int) o
  group by o.workspace_id
)
select w.id as workspace_id, w.name as workspace, coalesce(o.rows, 0) as outbox,
  coalesce(extract(epoch from greatest(now() - o.oldest, interval '0')), 0)::float8 as outbox_age,
  d.number as dead_letters
from sendonce.workspaces w
left join waiting o on o.workspace_id = w.id
cross join lateral (
  select count(*) as number from (
    select from sendonce.dead_letters d where d.workspace_id = w.id and d.discarded_at is null limit 1000) d) d
order by w.name
limit 500
