-- Remove what was rolled up of these buckets (workspace, mailstream, minute), to be made again.
with bucket as (
  select distinct * from unnest(%(workspace_id)b::uuid[], %(mailstream)b::text[], %(minute)b::timestamptz[])
    b (workspace_id, mailstream, minute)
), timed as (
  delete from sendonce.latencies l using bucket b
  where l.workspace_id = b.workspace_id and l.mailstream = b.mailstream and l.minute = b.minute
), carried as (
  delete from sendonce.carriers c using bucket b
  where c.workspace_id = b.workspace_id and c.mailstream = b.mailstream and c.minute = b.minute
)
delete from sendonce.rollups r using bucket b
where r.workspace_id = b.workspace_id and r.mailstream = b.mailstream and r.minute = b.minute
