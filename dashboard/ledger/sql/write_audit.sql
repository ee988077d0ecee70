-- Writes down what somebody did. Never empty.
insert into sendonce.audit (workspace_id, user_id, token_id, action, subject, reason, detail)
values (
    %(workspace_id)s::uuid, %(user_id)s::uuid, %(token_id)s::uuid,
    %(action)s::text, %(subject)s::text, %(reason)s::text, %(detail)s::jsonb
)
returning id
