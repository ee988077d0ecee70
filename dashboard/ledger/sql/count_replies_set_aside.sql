-- Why mails of an account answer no send, how many of each reason, and when the last one came. Counted up to a cap.
select reason, count(*), max(received_at)
from (
  select reason, received_at from sendonce.mail_replies
  where account_id = %(account_id)s::uuid and send_id is null
  order by received_at desc
  limit %(cap)s::int) newest
group by reason
order by count(*) desc, reason
