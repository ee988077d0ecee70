-- The attempts of each of these sends, oldest first. No row: none was started.
select t.send_id, t.n, coalesce(a.name, '') as account, coalesce(a.provider, '') as provider, t.idempotency_key, t.worker,
       t.claim_number, t.claimed_at, t.started_at, t.submit_deadline, t.request_deadline, t.finished_at,
       t.status::text as status, t.doubted_at, t.duration_ms, t.error_class, t.error_code, t.reason, t.phase,
       t.request_id, t.provider_message_id, t.settled_by::text as settled_by, t.batch,
       case when t.batch is not null then (select count(*) from sendonce.attempts b where b.batch = t.batch) end as together
  from sendonce.attempts t
  left join sendonce.accounts a on a.id = t.account_id
 where t.send_id = any(%(send_ids)s::uuid[]) and t.workspace_id = any(%(workspace_ids)s::uuid[])
 order by t.n
