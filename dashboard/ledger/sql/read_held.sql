-- Held sends of a workspace, oldest hold first: all that fit, behind a given hold (keyset pages: no offset, no count), or
-- those holds alone that are named, which are found by their numbers and not among all.
select h.id, h.send_id, h.mailstream, s.key, s.recipient_id, a.id, a.name, a.provider, h.reason, h.waives, h.opened_at,
  w.evidence, w.last_attempt, w.first_attempt_at, w.ambiguous_since, w.settled_after,
  case when not exists (select from sendonce.attempts e where e.send_id = w.send_id and e.status = 'ambiguous'
    and (e.idempotency_key is null or e.batch is not null or e.endpoint <> a.endpoint)) then w.ambiguous_since + a.key_window end,
  t.error_class, t.error_code, t.reason, t.phase, t.started_at, w.due_at, w.cancel_reason is not null,
  m.second_person, case when m.late_policy = 'cancel' then w.due_at + m.too_late_after end,
  (select count(*) from sendonce.attempts e join sendonce.attempts o on o.batch = e.batch
    where e.send_id = w.send_id and e.status = 'ambiguous')
from (
  select * from sendonce.holds
  where %(hold_ids)b::bigint[] is null and workspace_id = %(workspace_id)s::uuid and closed_at is null
    and (%(after_at)s::timestamptz is null or (opened_at, id) > (%(after_at)s::timestamptz, %(after_id)s::bigint))
  union all
  select * from sendonce.holds
  where id = any (%(hold_ids)b::bigint[]) and workspace_id = %(workspace_id)s::uuid and closed_at is null
) h
join sendonce.work w on w.send_id = h.send_id and w.state = 'held'
join sendonce.sends s on s.id = h.send_id
join sendonce.mailstreams m on m.workspace_id = h.workspace_id and m.name = h.mailstream
join sendonce.accounts a on a.id = coalesce(w.account_id, m.account_id)
left join sendonce.attempts t on t.send_id = h.send_id and t.n = w.last_attempt
where (%(mailstream)s::text is null or h.mailstream = %(mailstream)s::text)
  and (%(account)s::text is null or a.name = %(account)s::text)
  and (%(reason)s::text is null or h.reason = %(reason)s::text)
  and (%(failure)s::text is null or t.error_class = %(failure)s::text)
order by h.opened_at, h.id
limit %(limit)s
