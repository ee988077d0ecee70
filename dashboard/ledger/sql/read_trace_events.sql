-- What the provider told about each of these sends, in the order of its own times: of very many, half of the limit from
-- the beginning and half from the end. No row: nothing yet.
select e.send_id, e.id, e.event_id, e.event_type::text as event_type, e.occurred_at, e.received_at,
       e.provider_message_id, e.attempt, e.bounce_class, e.reason, e.machine, e.repeats, e.other_ids, e.matched_by,
       e.raw is not null as has_raw
  from unnest(%(send_ids)s::uuid[]) asked (send_id)
 cross join lateral ((select f.id from sendonce.events f
                       where f.send_id = asked.send_id order by f.occurred_at, f.id limit %(limit)s::int / 2)
                     union (select l.id from sendonce.events l
                       where l.send_id = asked.send_id order by l.occurred_at desc, l.id desc limit %(limit)s::int / 2)) ends
  join sendonce.events e on e.id = ends.id and e.workspace_id = any(%(workspace_ids)s::uuid[])
 order by e.occurred_at, e.id
