-- Record later deliveries. An outbox row that was recorded before (relayed again after a crash) is left out.
insert into sendonce.duplicates (
  send_id, workspace_id, mailstream, outbox_id, source, trigger_type, trigger_id, triggered_at, worker, state_met, verdict,
  difference, endpoint)
select p.send_id, p.workspace_id, p.mailstream, p.outbox_id, p.source, p.trigger_type, p.trigger_id, p.triggered_at,
  p.worker, p.state_met::sendonce.state, p.verdict::sendonce.verdict, string_to_array(p.difference, ','), p.endpoint
from unnest(
  %(send_id)b::uuid[], %(workspace_id)b::uuid[], %(mailstream)b::text[], %(outbox_id)b::uuid[], %(source)b::text[],
  %(trigger_type)b::text[], %(trigger_id)b::text[], %(triggered_at)b::timestamptz[], %(worker)b::uuid[],
  %(state_met)b::text[], %(verdict)b::text[], %(difference)b::text[], %(endpoint)b::text[])
  as p (send_id, workspace_id, mailstream, outbox_id, source, trigger_type, trigger_id, triggered_at, worker, state_met,
        verdict, difference, endpoint)
on conflict do nothing
