-- Gives a person a role in a workspace, in place of the one they had; a right that is bound as null stays as it is, or as
-- everybody has it. Never empty.
insert into sendonce.roles (user_id, workspace_id, role, reveal, messages)
values (%(user_id)s::uuid, %(workspace_id)s::uuid, %(role)s::sendonce.role,
  coalesce(%(reveal)s::boolean, true), coalesce(%(messages)s::boolean, false))
on conflict (user_id, workspace_id) do update
  set role = excluded.role, reveal = coalesce(%(reveal)s::boolean, roles.reveal),
    messages = coalesce(%(messages)s::boolean, roles.messages)
returning role
