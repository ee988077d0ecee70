-- Requests that wait in the outbox and may be meant by a text: by key or the start of one, trigger, recipient or address,
-- or for a recipient of the sends that are named.
-- An address with other than ASCII characters is left to whoever reads this to compare. So many rows are looked at, the
-- oldest first; the last row, whose id is null, tells whether there are more.
with waiting as (
    select o.id, o.send_id, o.asked_at, o.source, o.request->>'mailstream' as mailstream, o.request->>'key' as key,
           o.request->'trigger'->>'type' as trigger_type, o.request->'trigger'->>'id' as trigger_id,
           o.request->'recipient'->>'id' as recipient_id, o.request->'recipient'->>'address' as address
      from sendonce.outbox o
     where o.workspace_id = %(workspace_id)s::uuid
     order by o.position
     limit %(walk)s::int
)
(select w.id, w.send_id, w.asked_at, w.source, w.mailstream, w.key, w.trigger_type, w.trigger_id, w.address, false as more
   from waiting w
  where w.key = %(text)s::text or w.trigger_id = %(text)s::text or w.send_id = any(%(named)s::uuid[])
     or w.recipient_id = %(text)s::text
     or w.recipient_id in (select s.recipient_id from sendonce.sends s
                            where s.id = any(%(named)s::uuid[]) and s.workspace_id = %(workspace_id)s::uuid
                              and s.stripped_at is null)
     or length(%(text)s::text) >= %(shortest)s::int
        and (starts_with(w.key, %(text)s::text) or strpos(w.key, ':' || %(text)s::text) > 0)
     or %(address)s::text is not null
        and (lower(trim(w.address) collate "C") = %(address)s::text or w.address ~ '[^ -~]')
  order by w.asked_at, w.id
  limit %(limit)s::int)
union all
select null, null, null, null, null, null, null, null, null, count(*) >= %(walk)s::int from waiting
