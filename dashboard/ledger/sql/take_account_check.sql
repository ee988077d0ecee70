-- Takes one account whose check is due, asked for or a day old, so that no other worker has it meanwhile; none: nothing.
-- A new account is left alone for its first while: its DNS is often published after it was added.
insert into sendonce.account_checks as c (account_id, taken_at)
select d.id, now() from (
  select a.id
  from sendonce.accounts a left join sendonce.account_checks k on k.account_id = a.id
  where (%(account_id)s::uuid is null or a.id = %(account_id)s::uuid)
    and coalesce(k.taken_at <= now() - %(taken_for)s::interval, true)
    and (%(account_id)s::uuid is not null or k.asked_at is not null
      or coalesce(k.checked_at + %(every)s::interval, a.created_at + %(at_first)s::interval) <= now())
  order by k.asked_at nulls last, k.checked_at nulls first, a.id limit 1) d
on conflict (account_id) do update set taken_at = now()
  where coalesce(c.taken_at <= now() - %(taken_for)s::interval, true)
returning c.account_id
