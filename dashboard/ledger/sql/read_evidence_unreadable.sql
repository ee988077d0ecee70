-- Requests for sends that could not be read, around a time, newest first. No row: none.
select d.id, d.outbox_id, d.at, d.source, d.reason, d.payload
  from sendonce.dead_letters d
 where d.workspace_id = %(workspace_id)s::uuid and d.outbox_id is not null
   and d.at between coalesce(%(since)s::timestamptz, '-infinity') - %(margin)s::interval
                and coalesce(%(until)s::timestamptz, now()) + %(margin)s::interval
 order by d.at desc
 limit %(limit)s::int
