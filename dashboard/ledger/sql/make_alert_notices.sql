-- Make a notice on each channel for the open alerts of a workspace that nobody was told of, unless they are silenced now.
with told as (
  update sendonce.alerts a set told_at = now()
  where a.workspace_id = %(workspace_id)s::uuid and a.told_at is null and a.closed_at is null and not exists (
    select from sendonce.alert_silences s where s.workspace_id = a.workspace_id and s.until > now()
      and s.rule in ('', a.rule) and s.mailstream in ('', a.mailstream))
  returning a.id, a.workspace_id, a.severity
)
insert into sendonce.alert_notices (workspace_id, alert_id, channel_id, kind)
select t.workspace_id, t.id, c.id, 'fired'
from told t join sendonce.alert_channels c on c.workspace_id = t.workspace_id and c.least_severity <= t.severity
on conflict do nothing
