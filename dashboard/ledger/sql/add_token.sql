-- Adds an API token. Never empty.
insert into sendonce.api_tokens (workspace_id, name, token_hash, user_id)
values (%(workspace_id)s::uuid, %(name)s::text, %(token_hash)s::bytea, %(user_id)s::uuid)
returning id
