-- Keep the greatest outbox age and number of unknown sends of this minute and hour, a row of each for every workspace;
-- writes only where one has grown. What waits in the outbox counts from when it was asked for.
with measured as (
  select w.id as workspace_id,
    coalesce(extract(epoch from clock_timestamp() - o.oldest), 0)::float8 as age, u.unknown
  from sendonce.workspaces w
  left join (select workspace_id, min(asked_at) as oldest from sendonce.outbox group by workspace_id) o
    on o.workspace_id = w.id
  cross join lateral (
    select count(*) as unknown from sendonce.work k where k.workspace_id = w.id and k.unknown_since is not null) u
), of_the_hour as (
  insert into sendonce.rollup_hours as r (workspace_id, mailstream, minute, outbox_age_seconds, unknown)
  select m.workspace_id, '', date_trunc('hour', now()), greatest(m.age, 0), m.unknown
  from measured m
  left join sendonce.rollup_hours r
    on r.workspace_id = m.workspace_id and r.minute = date_trunc('hour', now()) and r.mailstream = ''
  where r.minute is null or m.age > r.outbox_age_seconds or m.unknown > r.unknown
  on conflict (workspace_id, minute, mailstream, account_id, source) do update
  set outbox_age_seconds = greatest(r.outbox_age_seconds, excluded.outbox_age_seconds),
    unknown = greatest(r.unknown, excluded.unknown)
)
insert into sendonce.rollups as r (workspace_id, mailstream, minute, outbox_age_seconds, unknown)
select m.workspace_id, '', date_trunc('minute', now()), greatest(m.age, 0), m.unknown
from measured m
left join sendonce.rollups r on r.workspace_id = m.workspace_id and r.minute = date_trunc('minute', now()) and r.mailstream = ''
where r.minute is null or m.age > r.outbox_age_seconds or m.unknown > r.unknown
on conflict (workspace_id, minute, mailstream, account_id, source) do update
set outbox_age_seconds = greatest(r.outbox_age_seconds, excluded.outbox_age_seconds),
  unknown = greatest(r.unknown, excluded.unknown)
