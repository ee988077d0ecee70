-- Remove the roll-ups of these buckets, to be made again.
delete from sendonce.rollups r
using unnest(%(workspace_id)b::uuid[], %(mailstream)b::text[], %(minute)b::timestamptz[]) b (workspace_id, mailstream, minute)
where r.workspace_id = b.workspace_id and r.mailstream = b.mailstream and r.minute = b.minute
