-- Take the oldest requests that no other relay holds. Empty: nothing to relay now.
select position, id, send_id, workspace_id, asked_at, source, request::text
from sendonce.outbox
order by position
limit %(limit)s
for update skip locked
