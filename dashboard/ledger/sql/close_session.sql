-- Ends a session. Empty: it had ended.
delete from sendonce.sessions where token_hash = %(token_hash)s::bytea
returning user_id
