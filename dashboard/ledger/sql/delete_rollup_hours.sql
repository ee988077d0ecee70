-- Remove the hours of these buckets (workspace, mailstream, hour), to be summed up again.
with timed as (
  delete from sendonce.latency_hours l
  using unnest(%(workspace_id)b::uuid[], %(mailstream)b::text[], %(hour)b::timestamptz[]) b (workspace_id, mailstream, hour)
  where l.workspace_id = b.workspace_id and l.mailstream = b.mailstream and l.minute = b.hour
)
delete from sendonce.rollup_hours r
using unnest(%(workspace_id)b::uuid[], %(mailstream)b::text[], %(hour)b::timestamptz[]) b (workspace_id, mailstream, hour)
where r.workspace_id = b.workspace_id and r.mailstream = b.mailstream and r.minute = b.hour
