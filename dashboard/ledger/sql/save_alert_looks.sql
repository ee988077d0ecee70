-- Store what was seen of locked rules. One that begins to fire opens an alert, one that is quiet again closes it.
with look as (
  select * from unnest(%(workspace_id)b::uuid[], %(name)b::text[], %(value)b::float8[], %(state)b::text[],
    %(since)b::timestamptz[]) l (workspace_id, name, value, state, since)
), saved as (
  update sendonce.alert_rules r
  set value = l.value, state = l.state::sendonce.alert_state, since = l.since, looked_at = now()
  from look l where r.workspace_id = l.workspace_id and r.name = l.name
  returning r.workspace_id, r.name, r.measure, r.mailstream, r.severity, r.threshold, r.value, r.state
), opened as (
  insert into sendonce.alerts (workspace_id, rule, measure, mailstream, severity, threshold, value, worst)
  select s.workspace_id, s.name, s.measure, s.mailstream, s.severity, s.threshold, s.value, s.value
  from saved s where s.state in ('firing', 'clearing')
  on conflict (workspace_id, rule) where closed_at is null do update set worst = greatest(alerts.worst, excluded.worst)
  returning id
)
update sendonce.alerts a set closed_at = now()
from saved s
where s.state in ('quiet', 'rising') and a.workspace_id = s.workspace_id and a.rule = s.name and a.closed_at is null
