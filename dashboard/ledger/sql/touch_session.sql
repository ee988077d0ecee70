-- Notes that a session is in use, at most once a minute. Empty: noted less than a minute ago, or no such session.
update sendonce.sessions set seen_at = now()
where token_hash = %(token_hash)s::bytea and seen_at < now() - interval '1 minute'
returning seen_at
