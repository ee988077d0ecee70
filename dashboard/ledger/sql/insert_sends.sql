-- Propose new sends, sorted by id by the caller. Returns the ids that are new, each with the domain at which its
-- mailstream takes replies; one that is not returned exists already.
with inserted as (
insert into sendonce.sends (
  id, workspace_id, mailstream, key, recipient_id, address_lookup, fingerprint, outbox_id, run_by, state, reason, source,
  trigger_type, trigger_id, triggered_at, metadata, asked_at, due_at, settled_at)
select
  p.id, p.workspace_id, p.mailstream, p.key, p.recipient_id, p.address_lookup, p.fingerprint, p.outbox_id,
  %(run_by)s::text::sendonce.run_by, case when p.problem is null then 'open' else 'failed' end::sendonce.send_state,
  p.problem, p.source, p.trigger_type, p.trigger_id, p.triggered_at, p.metadata::jsonb, p.asked_at,
  greatest(p.not_before, p.asked_at), case when p.problem is not null then now() end
from unnest(
  %(id)b::uuid[], %(workspace_id)b::uuid[], %(mailstream)b::text[], %(key)b::text[], %(recipient_id)b::text[],
  %(address_lookup)b::bytea[], %(fingerprint)b::bytea[], %(outbox_id)b::uuid[], %(problem)b::text[], %(source)b::text[],
  %(trigger_type)b::text[], %(trigger_id)b::text[], %(triggered_at)b::timestamptz[], %(metadata)b::text[],
  %(asked_at)b::timestamptz[], %(not_before)b::timestamptz[])
  as p (id, workspace_id, mailstream, key, recipient_id, address_lookup, fingerprint, outbox_id, problem, source,
        trigger_type, trigger_id, triggered_at, metadata, asked_at, not_before)
on conflict do nothing
returning id, workspace_id, mailstream
)
select i.id, m.reply_domain
from inserted i left join sendonce.mailstreams m on m.workspace_id = i.workspace_id and m.name = i.mailstream
