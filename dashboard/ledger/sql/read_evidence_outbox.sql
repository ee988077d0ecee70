-- Requests that wait in the outbox and may be meant by a text: by key or the start of one, trigger, recipient or address,
-- or for a recipient of the sends that are named. `whole`: not merely by the start of a word of its key. An address with
-- other than ASCII characters is left to whoever reads this to compare. So many rows are looked at, the oldest first;
-- the last row, whose id is null, tells whether there are more.
with waiting as (
    select o.id, o.send_id, o.asked_at, o.source, o.request->>'mailstream' as mailstream, o.request->>'key' as key,
           o.request->'trigger'->>'type' as trigger_type, o.request->'trigger'->>'id' as trigger_id,
           o.request->'recipient'->>'id' as recipient_id, o.request->'recipient'->>'address' as address
      from sendonce.outbox o
     where o.workspace_id = %(workspace_id)s::uuid
     order by o.position
     limit %(walk)s::int
),
meant as (
    select w.*,
           coalesce(w.trigger_id = %(text)s::text, false) or w.send_id = any(%(named)s::uuid[])
             or coalesce(strpos(':' || w.key || ':', ':' || %(text)s::text || ':') > 0, false)
             or coalesce(w.recipient_id = %(text)s::text
                  or w.recipient_id in (select s.recipient_id from sendonce.sends s
                                         where s.id = any(%(named)s::uuid[]) and s.workspace_id = %(workspace_id)s::uuid
                                           and s.stripped_at is null), false)
             or coalesce(%(address)s::text is not null
                  and (lower(trim(w.address) collate "C") = %(address)s::text or w.address ~ '[^ -~]'), false) as whole
      from waiting w
)
(select m.id, m.send_id, m.asked_at, m.source, m.mailstream, m.key, m.trigger_type, m.trigger_id, m.address, m.whole,
        false as more
   from meant m
  where m.whole
     or length(%(text)s::text) >= %(shortest)s::int
        and (starts_with(m.key, %(text)s::text) or strpos(m.key, ':' || %(text)s::text) > 0)
  order by m.whole desc, m.asked_at, m.id
  limit %(limit)s::int)
union all
select null, null, null, null, null, null, null, null, null, null, count(*) >= %(walk)s::int from waiting
