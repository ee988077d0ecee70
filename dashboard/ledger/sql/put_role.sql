-- Gives a person a role in a workspace, in place of the one they had. Never empty.
insert into sendonce.roles (user_id, workspace_id, role)
values (%(user_id)s::uuid, %(workspace_id)s::uuid, %(role)s::sendonce.role)
on conflict (user_id, workspace_id) do update set role = excluded.role
returning role
