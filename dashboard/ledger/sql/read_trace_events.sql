-- What the provider told about a send, in the order of its own times, up to a limit. No row: nothing yet.
select id, event_id, event_type::text as event_type, occurred_at, received_at, provider_message_id, attempt,
       bounce_class, reason, machine, repeats, other_ids, matched_by, raw is not null as has_raw
  from sendonce.events
 where send_id = %(send_id)s::uuid and workspace_id = %(workspace_id)s::uuid
 order by occurred_at, id
 limit %(limit)s::int
