-- Forgets, after a log-in, the failures of its login name and its own try of that client. Empty: there were none.
delete from sendonce.login_failures
where subject = %(login)s::bytea or (subject = %(client)s::bytea and at = any(%(at)s::timestamptz[]))
returning at
