-- Opens a session, and clears away those that are over. Empty: the password was changed, or its person shut out, while
-- it was being looked at.
with over as (
    delete from sendonce.sessions where user_id = %(user_id)s::uuid and expires_at < now()
)
insert into sendonce.sessions (token_hash, user_id, expires_at)
select %(token_hash)s::bytea, u.id, now() + %(lifetime)s::interval
from sendonce.users u
where u.id = %(user_id)s::uuid and u.password_hash = %(password_hash)s::text and u.disabled_at is null
for share of u
returning expires_at
