-- A page of what the provider told about a send, in the order of its own times, behind (time, id). No row: that was all.
select e.id, e.event_id, e.event_type::text as event_type, e.occurred_at, e.received_at, e.provider_message_id, e.attempt,
       e.bounce_class, e.reason, e.machine, e.repeats, e.other_ids, e.matched_by, e.raw is not null as has_raw
  from sendonce.events e
 where e.send_id = %(send_id)s::uuid and e.workspace_id = %(workspace_id)s::uuid
   and (e.occurred_at, e.id) > (%(after_at)s::timestamptz, %(after_id)s::bigint)
 order by e.occurred_at, e.id
 limit %(limit)s::int
