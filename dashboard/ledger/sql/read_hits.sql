-- The sends that a searched text may mean, one indexed read for each reading of it. A reading that the text does not
-- allow is bound as null or as an empty array and finds nothing. A rank is a place in the enum Reading. With a place to
-- begin before (not the end of time), only what was recorded before it, of the readings that may find any number. No
-- row: nothing is known by this text.
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
-- What stands before the numbers in keys ('receipt:order_'), trigger ids ('order_') and recipient ids; the leap goes over
-- all digits, since ':' follows '9'.
key_stems as (
    (select substring(s.key from '^[^:]*:[^0-9]*|^[^0-9:]*') as stem, 1 as found
       from sendonce.sends s
      where s.workspace_id = %(workspace_id)s::uuid and %(number)s::text is not null
      order by s.key limit 1)
    union all
    select substring(next.key from '^[^:]*:[^0-9]*|^[^0-9:]*'), key_stems.found + 1
      from key_stems,
           lateral (select s.key from sendonce.sends s
                     where s.workspace_id = %(workspace_id)s::uuid and s.key >= (key_stems.stem || ':') collate "C"
                     order by s.key limit 1) next
     where key_stems.found < %(kinds)s::int
),
trigger_stems as (
    (select substring(s.trigger_id from '^[^0-9]*') as stem, 1 as found
       from sendonce.sends s
      where s.workspace_id = %(workspace_id)s::uuid and %(number)s::text is not null
      order by s.trigger_id limit 1)
    union all
    select substring(next.trigger_id from '^[^0-9]*'), trigger_stems.found + 1
      from trigger_stems,
           lateral (select s.trigger_id from sendonce.sends s
                     where s.workspace_id = %(workspace_id)s::uuid
                       and s.trigger_id >= (trigger_stems.stem || ':') collate "C"
                     order by s.trigger_id limit 1) next
     where trigger_stems.found < %(kinds)s::int
),
recipient_stems as (
    (select substring(s.recipient_id from '^[^0-9]*') as stem, 1 as found
       from sendonce.sends s
      where s.workspace_id = %(workspace_id)s::uuid and %(number)s::text is not null
      order by s.recipient_id limit 1)
    union all
    select substring(next.recipient_id from '^[^0-9]*'), recipient_stems.found + 1
      from recipient_stems,
           lateral (select s.recipient_id from sendonce.sends s
                     where s.workspace_id = %(workspace_id)s::uuid
                       and s.recipient_id >= (recipient_stems.stem || ':') collate "C"
                     order by s.recipient_id limit 1) next
     where recipient_stems.found < %(kinds)s::int
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
        and (s.recorded_at, s.id) < (%(before_at)s::timestamptz, %(before_id)s::uuid)
      order by s.recorded_at desc, s.id desc limit %(limit)s::int)
    union all
    (select 5, d.send_id
       from sendonce.duplicates d
      where d.workspace_id = %(workspace_id)s::uuid and d.trigger_id = %(text)s::text
      order by d.at desc limit %(limit)s::int)
    union all
    (select 6, s.id
       from sendonce.sends s
      where s.workspace_id = %(workspace_id)s::uuid and s.recipient_id = %(text)s::text
        and (s.recorded_at, s.id) < (%(before_at)s::timestamptz, %(before_id)s::uuid)
      order by s.recorded_at desc, s.id desc limit %(limit)s::int)
    union all
    select 7, near.id
      from unnest(%(lookups)s::bytea[]) as lookup,
           lateral (select s.id from sendonce.sends s
                     where s.workspace_id = %(workspace_id)s::uuid and s.address_lookup = lookup
                       and (s.recorded_at, s.id) < (%(before_at)s::timestamptz, %(before_id)s::uuid)
                     order by s.recorded_at desc, s.id desc limit %(limit)s::int) near
    union all
    (select 8, n.send_id
       from sendonce.notes n
      where n.workspace_id = %(workspace_id)s::uuid and n.ticket_lookup = %(ticket)s::text
      order by n.at desc limit %(limit)s::int)
    union all
    select 9, near.send_id
      from unnest(%(subjects)s::bytea[]) as lookup,
           lateral (select m.send_id from sendonce.messages m
                     where m.subject_lookup = lookup and m.subject_lookup is not null
                       and (m.subject_at, m.send_id) < (%(before_at)s::timestamptz, %(before_id)s::uuid)
                     order by m.subject_at desc, m.send_id desc limit %(limit)s::int) near
    union all
    (select 10, near.id
       from key_stems,
            lateral (select s.id from sendonce.sends s -- this number and no longer one: what follows is no digit
                      where s.workspace_id = %(workspace_id)s::uuid
                        and s.key >= (key_stems.stem || %(number)s::text) collate "C"
                        and s.key < (key_stems.stem || %(number)s::text || '0') collate "C"
                      union all
                     select s.id from sendonce.sends s
                      where s.workspace_id = %(workspace_id)s::uuid
                        and s.key >= (key_stems.stem || %(number)s::text || ':') collate "C"
                        and s.key < (key_stems.stem || %(number_end)s::text) collate "C"
                      limit %(limit)s::int) near
      limit %(limit)s::int)
    union all
    (select 10, near.id
       from trigger_stems,
            lateral (select s.id from sendonce.sends s
                      where s.workspace_id = %(workspace_id)s::uuid
                        and s.trigger_id = (trigger_stems.stem || %(number)s::text) collate "C"
                      order by s.recorded_at desc limit %(limit)s::int) near
      limit %(limit)s::int)
    union all
    (select 10, near.id
       from recipient_stems,
            lateral (select s.id from sendonce.sends s
                      where s.workspace_id = %(workspace_id)s::uuid
                        and s.recipient_id = (recipient_stems.stem || %(number)s::text) collate "C"
                      order by s.recorded_at desc limit %(limit)s::int) near
      limit %(limit)s::int)
    union all
    (select 11, near.id
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
 where (s.recorded_at, s.id) < (%(before_at)s::timestamptz, %(before_id)s::uuid)
 order by best.rank, s.recorded_at desc, s.id desc
