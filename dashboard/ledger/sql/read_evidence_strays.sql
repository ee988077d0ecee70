-- What providers told about these people around a time without naming a send of ours, oldest first. No row: nothing.
select u.id, u.workspace_id, a.name as account, a.provider, u.event_type::text as event_type, u.occurred_at, u.received_at,
       u.provider_message_id
  from unnest(%(workspace_ids)s::uuid[]) searched (workspace_id)
 cross join unnest(%(lookups)s::bytea[]) person (address_lookup)
 cross join lateral (select * from sendonce.unmatched u
                      where u.workspace_id = searched.workspace_id and u.recipient = person.address_lookup
                        and u.occurred_at between coalesce(%(since)s::timestamptz, '-infinity') - %(margin)s::interval
                                              and coalesce(%(until)s::timestamptz, now()) + %(margin)s::interval
                      order by u.occurred_at desc
                      limit %(limit)s::int) u
  join sendonce.accounts a on a.id = u.account_id
 order by u.occurred_at, u.id
