-- What these workspaces are called.
select k.id, coalesce(nullif(k.title, ''), k.name) from sendonce.workspaces k where k.id = any(%(workspace_ids)s::uuid[])
