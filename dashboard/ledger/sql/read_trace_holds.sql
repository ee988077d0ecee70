-- The holds of each of these sends, oldest first. No row: it was never held.
select send_id, id, reason, waives, opened_at, closed_at, closed_by::text as closed_by
  from sendonce.holds
 where send_id = any(%(send_ids)s::uuid[]) and workspace_id = any(%(workspace_ids)s::uuid[])
 order by opened_at, id
