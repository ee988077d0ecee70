-- What the mailstreams and accounts of these open sends say about retries and doubt; the account is the send's own.
select w.send_id, m.max_attempts, m.retry_for, m.grace, m.unknown_policy::text, a.key_window, a.settling_time, a.endpoint,
  case when m.late_policy = 'cancel' then m.too_late_after end
from sendonce.work w
join sendonce.mailstreams m on m.workspace_id = w.workspace_id and m.name = w.mailstream
join sendonce.accounts a on a.id = coalesce(w.account_id, m.account_id)
where w.send_id = any (%(ids)b::uuid[])
