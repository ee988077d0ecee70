-- The holds of a send, oldest first. No row: it was never held.
select id, reason, waives, opened_at, closed_at, closed_by::text as closed_by
  from sendonce.holds
 where send_id = %(send_id)s::uuid and workspace_id = %(workspace_id)s::uuid
 order by opened_at, id
