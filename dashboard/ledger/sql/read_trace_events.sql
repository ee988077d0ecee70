-- What the provider told about each of these sends, in the order of its own times, up to a limit for each. No row:
-- nothing yet.
select told.*
  from unnest(%(send_ids)s::uuid[]) asked (send_id),
       lateral (select e.send_id, e.id, e.event_id, e.event_type::text as event_type, e.occurred_at, e.received_at,
                       e.provider_message_id, e.attempt, e.bounce_class, e.reason, e.machine, e.repeats, e.other_ids,
                       e.matched_by, e.raw is not null as has_raw
                  from sendonce.events e
                 where e.send_id = asked.send_id and e.workspace_id = any(%(workspace_ids)s::uuid[])
                 order by e.occurred_at, e.id
                 limit %(limit)s::int) told
 order by told.occurred_at, told.id
