-- Since when this workspace remembers all that was asked for: since it is there, or since its shortest retention began.
-- Always one row.
select greatest(k.created_at, max(now() - m.retain_for)) as known_since
  from sendonce.workspaces k
  left join sendonce.mailstreams m on m.workspace_id = k.id
 where k.id = %(workspace_id)s::uuid
 group by k.id, k.created_at
