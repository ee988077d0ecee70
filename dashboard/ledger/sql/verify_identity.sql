-- Sends with what their ids follow from (a tombstone has lost that), all of them or a sample of their pages (in per cent), for a cursor.
select id, workspace_id, mailstream, key from sendonce.sends tablesample system (%(percent)s::float4)
where stripped_at is null
