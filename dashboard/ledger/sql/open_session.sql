-- Opens a session, and clears away those that are over. Never empty.
with over as (
    delete from sendonce.sessions where user_id = %(user_id)s::uuid and expires_at < now()
)
insert into sendonce.sessions (token_hash, user_id, expires_at)
values (%(token_hash)s::bytea, %(user_id)s::uuid, now() + %(lifetime)s::interval)
returning expires_at
