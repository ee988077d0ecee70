-- The sends that a searched text may mean, one indexed read for each reading of it. A reading that the text does not
-- allow is bound as null or as an empty array and finds nothing. A rank is a place in the enum Reading. No row: nothing
-- is known by this text.
with recursive
kinds as ( -- the first parts of this workspace's keys, found by leaps through the unique index: 'receipt', 'trial-day-7'
    (select split_part(s.key, ':', 1) as kind, 1 as found
       from sendonce.sends s
      where s.workspace_id = %(workspace_id)s::uuid and %(prefix)s::text is not null
      order by s.key limit 1)
    union all
    select split_part(next.key, ':', 1), kinds.found + 1
      from kinds,
           lateral (select s.key from sendonce.sends s
                     where s.workspace_id = %(workspace_id)s::uuid and s.key >= (kinds.kind || ';') collate "C"
                     order by s.key limit 1) next
     where kinds.found < %(kinds)s::int
),
prefixes as ( -- the start of a key, or of what follows the kind in it
    select %(prefix)s::text as low, %(prefix_end)s::text as high
    union
    select kinds.kind || ':' || %(prefix)s::text, kinds.kind || ':' || %(prefix_end)s::text from kinds
),
found as (
    select 1 as rank, s.id
      from sendonce.sends s where s.id = any(%(send_ids)s::uuid[])
    union all
    (select 2, s.id
       from sendonce.sends s
      where s.workspace_id = %(workspace_id)s::uuid and s.key = %(key)s::text collate "C"
      limit %(limit)s::int)
    union all
    (select 3, t.send_id
       from sendonce.attempts t
      where t.provider_message_id = any(%(message_ids)s::text[]) and t.provider_message_id is not null
        and t.workspace_id = %(workspace_id)s::uuid
      limit %(limit)s::int)
    union all
    (select 3, n.send_id
       from sendonce.second_message_ids n
      where n.provider_message_id = any(%(message_ids)s::text[])
      limit %(limit)s::int)
    union all
    (select 4, e.send_id
       from sendonce.events e
      where e.event_id = %(text)s::text and e.workspace_id = %(workspace_id)s::uuid
      limit %(limit)s::int)
    union all
    (select 5, s.id
       from sendonce.sends s
      where s.workspace_id = %(workspace_id)s::uuid and s.trigger_id = %(text)s::text
      order by s.recorded_at desc limit %(limit)s::int)
    union all
    (select 5, d.send_id
       from sendonce.duplicates d
      where d.workspace_id = %(workspace_id)s::uuid and d.trigger_id = %(text)s::text
      order by d.at desc limit %(limit)s::int)
    union all
    (select 6, s.id
       from sendonce.sends s
      where s.workspace_id = %(workspace_id)s::uuid and s.recipient_id = %(text)s::text
      order by s.recorded_at desc limit %(limit)s::int)
    union all
    select 7, near.id
      from unnest(%(lookups)s::bytea[]) as lookup,
           lateral (select s.id from sendonce.sends s
                     where s.workspace_id = %(workspace_id)s::uuid and s.address_lookup = lookup
                     order by s.recorded_at desc limit %(limit)s::int) near
    union all
    (select 8, near.id
       from prefixes,
            lateral (select s.id from sendonce.sends s
                      where s.workspace_id = %(workspace_id)s::uuid
                        and s.key >= prefixes.low collate "C" and s.key < prefixes.high collate "C"
                      order by s.key limit %(limit)s::int) near
      limit %(limit)s::int)
),
best as (select found.id, min(found.rank) as rank from found group by found.id)
select s.id as send_id, s.mailstream, s.key, coalesce(w.state::text, s.state::text) as state,
       best.rank, s.recorded_at, s.recipient_id
  from best
  join sendonce.sends s on s.id = best.id and s.workspace_id = %(workspace_id)s::uuid
  left join sendonce.work w on w.send_id = s.id
 order by best.rank, s.recorded_at desc, s.id
