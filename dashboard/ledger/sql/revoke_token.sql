-- Revokes an API token. Empty: the workspace has no such token that is still good.
update sendonce.api_tokens set revoked_at = now()
where workspace_id = %(workspace_id)s::uuid and id = %(token_id)s::uuid and revoked_at is null
returning id
