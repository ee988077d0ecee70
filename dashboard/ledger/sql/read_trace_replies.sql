-- The mails that answer these sends, the oldest first; so few are kept of each that all are read.
select send_id, id, at, received_at, automatic, own_address, sender, matched_by, content is not null as has_content
from sendonce.mail_replies
where send_id = any (%(send_ids)b::uuid[])
order by send_id, at, id
