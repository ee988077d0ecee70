-- Take notices that are due, and put their next try off so that nobody else has them meanwhile; that it is over
-- is told after that it was. One that was taken as often as it may be, and never told of, ended its workers: it is given
-- up. No row: none is due.
with fatal as (
  update sendonce.alert_notices set next_try_at = null, gave_up_at = now(),
    last_error = 'no worker that sent it lived to tell'
  where next_try_at <= now() and tries >= %(most)s::int
), due as (
  select n.id from sendonce.alert_notices n where n.next_try_at <= now() and n.tries < %(most)s::int and not (n.kind = 'cleared' and exists (
    select from sendonce.alert_notices f where f.alert_id = n.alert_id and f.channel_id = n.channel_id
      and f.kind = 'fired' and f.next_try_at is not null))
  order by n.next_try_at, n.id limit %(limit)s::int for update skip locked
), taken as (
  update sendonce.alert_notices n set next_try_at = now() + %(taken_for)s::interval, tries = n.tries + 1
  from due where n.id = due.id
  returning n.id, n.tries, n.made_at, n.kind, n.alert_id, n.channel_id, n.workspace_id
)
select t.id, t.tries, t.made_at, t.kind::text as kind, t.channel_id, c.kind::text as channel_kind, c.target,
  coalesce(nullif(w.title, ''), w.name) as workspace, t.alert_id, a.rule, a.measure, a.mailstream,
  a.severity::text as severity, a.threshold, case t.kind when 'cleared' then a.worst else a.value end as value,
  a.opened_at, a.closed_at
from taken t join sendonce.alert_channels c on c.id = t.channel_id join sendonce.workspaces w on w.id = t.workspace_id
left join sendonce.alerts a on a.id = t.alert_id
order by t.id
