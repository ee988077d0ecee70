-- Adds a person. Empty: the login is taken.
insert into sendonce.users (login, name, password_hash)
values (%(login)s::text, %(name)s::text, %(password_hash)s::text)
on conflict (login) do nothing
returning id
