-- Delete mails that answer no send and came in before this time, account by account. Returns one row for each.
with old as (
  select o.id
  from sendonce.accounts a cross join lateral (
    select r.id from sendonce.mail_replies r
    where r.account_id = a.id and r.send_id is null and r.received_at < %(before)s::timestamptz
    order by r.received_at
    limit %(limit)s::int) o
  limit %(limit)s::int
)
delete from sendonce.mail_replies r using old where r.id = old.id and r.send_id is null
returning r.id
