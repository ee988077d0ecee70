-- The newest alerts of a workspace and what came of their notices. No row: none ever fired.
select a.id, a.rule, a.measure, a.mailstream, a.severity::text as severity, a.threshold, a.opened_at, a.value, a.worst,
  a.closed_at, a.told_at,
  a.closed_at is null and exists (select from sendonce.alert_silences s where s.workspace_id = a.workspace_id
    and s.until > now() and s.rule in ('', a.rule) and s.mailstream in ('', a.mailstream)) as silenced,
  n.delivered, n.waiting, n.given_up, n.last_error
from sendonce.alerts a
cross join lateral (
  select count(*) filter (where n.delivered_at is not null) as delivered,
    count(*) filter (where n.next_try_at is not null) as waiting,
    count(*) filter (where n.gave_up_at is not null) as given_up, max(n.last_error) as last_error
  from sendonce.alert_notices n where n.alert_id = a.id) n
where a.workspace_id = %(workspace_id)s::uuid and (%(before)s::bigint is null or a.id < %(before)s::bigint)
  and (not %(open_only)s::bool or a.closed_at is null)
order by a.id desc
limit %(limit)s::int
