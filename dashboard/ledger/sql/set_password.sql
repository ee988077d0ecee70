-- Changes a password and ends every session that the old one opened. Empty: nobody has this login.
with changed as (
    update sendonce.users set password_hash = %(password_hash)s::text where login = %(login)s::text returning id
), ended as (
    delete from sendonce.sessions where user_id in (select id from changed)
)
select id from changed
