-- Tell whoever was told of an alert of a workspace that it is over.
with cleared as (
  update sendonce.alerts a set cleared_told_at = now()
  where a.workspace_id = %(workspace_id)s::uuid and a.told_at is not null and a.closed_at is not null and a.cleared_told_at is null
  returning a.id, a.workspace_id
)
insert into sendonce.alert_notices (workspace_id, alert_id, channel_id, kind)
select c.workspace_id, c.id, n.channel_id, 'cleared'
from cleared c join sendonce.alert_notices n on n.alert_id = c.id and n.kind = 'fired'
on conflict do nothing
