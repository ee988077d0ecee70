-- Keeps a token with the first body that it came with, and forgets some whose time is over. Never empty: whether this
-- body is that one.
with gone as (
    select account_id, token from sendonce.signed_tokens
    where good_until < now()
    order by good_until
    limit 20
    for update skip locked
), forgotten as (
    delete from sendonce.signed_tokens old using gone where (old.account_id, old.token) = (gone.account_id, gone.token)
)
insert into sendonce.signed_tokens as known (account_id, token, body, good_until)
values (%(account_id)s::uuid, %(token)s::bytea, %(body)s::bytea, %(good_until)s::timestamptz)
on conflict (account_id, token) do update set body = known.body
returning body = %(body)s::bytea
