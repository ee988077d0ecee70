-- Counts a try to log in against its login name and its client, and forgets those of yesterday. Never empty.
with old as (
    delete from sendonce.login_failures where subject = any(%(subjects)s::bytea[]) and at < now() - interval '1 day'
)
insert into sendonce.login_failures (subject, at)
select subject, clock_timestamp() from unnest(%(subjects)s::bytea[]) as subject
returning at
