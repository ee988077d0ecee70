-- Shuts a person out and ends their sessions; doing it twice keeps the first time. Empty: nobody has this login.
with shut_out as (
    update sendonce.users set disabled_at = coalesce(disabled_at, now()) where login = %(login)s::text returning id
), ended as (
    delete from sendonce.sessions where user_id in (select id from shut_out)
)
select id from shut_out
