-- How each workspace stands now, for a scrape: from the outbox, the work table, the open holds and small tables.
with waiting as (
  select o.workspace_id, count(*) as rows, min(o.asked_at) as oldest
  from (select workspace_id, asked_at from sendonce.outbox order by position limit %(counted)s::int) o
  group by o.workspace_id
), open as (
  select workspace_id, min(claim_at) filter (where state = 'pending' and claim_at <= now()) as due,
    min(unknown_since) filter (where state = 'unknown') as unknown,
    count(*) filter (where state = 'claimed' and lease_until < now()) as stale
  from sendonce.work group by workspace_id
), letters as (
  select workspace_id, count(*) as number
  from (select workspace_id from sendonce.dead_letters where discarded_at is null limit 1000) d group by workspace_id
)
select w.id as workspace_id, w.name as workspace, coalesce(o.rows, 0) as outbox,
  coalesce(extract(epoch from greatest(now() - o.oldest, interval '0')), 0)::float8 as outbox_age,
  coalesce(extract(epoch from now() - k.due), 0)::float8 as due_age,
  coalesce(extract(epoch from now() - k.unknown), 0)::float8 as unknown_age,
  coalesce(extract(epoch from now() - h.oldest), 0)::float8 as held_age,
  coalesce(k.stale, 0) as stale_claims, coalesce(d.number, 0) as dead_letters
from sendonce.workspaces w
left join waiting o on o.workspace_id = w.id left join open k on k.workspace_id = w.id
left join letters d on d.workspace_id = w.id
cross join lateral (select min(h.opened_at) as oldest from sendonce.holds h
  where h.workspace_id = w.id and h.closed_at is null) h
order by w.name
limit 500
