-- Lock the rules that nobody looked at for a while, to look at them. No row: none is due, or others are at it.
select workspace_id, name, measure, mailstream, threshold, clears_at, hold_for, span, least, severity::text as severity,
  enabled, state::text as state, since, value, looked_at
from sendonce.alert_rules
where enabled and (looked_at is null or looked_at <= now() - %(every)s::interval)
order by looked_at nulls first, workspace_id, name
limit %(limit)s::int
for update skip locked
