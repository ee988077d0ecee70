-- The sends that a searched text nearly means: whose ids begin with it (rank 12 in the enum Reading), or are spelled with
-- one slip (rank 13). Each spelling is looked up in the index that its exact form has. No row: nothing is close.
with found as (
    (select 12 as rank, s.id
       from sendonce.sends s
      where s.id between %(first_id)s::uuid and %(last_id)s::uuid and s.workspace_id = %(workspace_id)s::uuid
      order by s.id limit %(limit)s::int)
    union all
    (select 12, t.send_id
       from sendonce.attempts t
      where t.provider_message_id >= %(piece)s::text collate "C" and t.provider_message_id < %(piece_end)s::text collate "C"
        and t.provider_message_id is not null and t.workspace_id = %(workspace_id)s::uuid
      order by t.provider_message_id limit %(limit)s::int)
    union all
    (select 12, e.send_id
       from sendonce.events e
      where e.event_id >= %(piece)s::text collate "C" and e.event_id < %(piece_end)s::text collate "C"
        and e.workspace_id = %(workspace_id)s::uuid
      order by e.event_id limit %(limit)s::int)
    union all
    (select 12, s.id
       from sendonce.sends s
      where s.workspace_id = %(workspace_id)s::uuid
        and s.trigger_id >= %(piece)s::text collate "C" and s.trigger_id < %(piece_end)s::text collate "C"
      order by s.trigger_id limit %(limit)s::int)
    union all
    (select 12, s.id
       from sendonce.sends s
      where s.workspace_id = %(workspace_id)s::uuid
        and s.recipient_id >= %(piece)s::text collate "C" and s.recipient_id < %(piece_end)s::text collate "C"
      order by s.recipient_id limit %(limit)s::int)
    union all
    (select 13, s.id
       from unnest(%(send_ids)s::uuid[]) as spelling
       join sendonce.sends s on s.id = spelling
      limit %(limit)s::int)
    union all
    (select 13, near.id
       from unnest(%(written)s::text[]) as spelling,
            lateral (select s.id from sendonce.sends s
                      where s.workspace_id = %(workspace_id)s::uuid and s.key = spelling collate "C"
                      limit %(limit)s::int) near
      limit %(limit)s::int)
    union all
    (select 13, near.id
       from unnest(%(written)s::text[]) as spelling,
            lateral (select s.id from sendonce.sends s
                      where s.workspace_id = %(workspace_id)s::uuid and s.trigger_id = spelling collate "C"
                      order by s.recorded_at desc
                      limit %(limit)s::int) near
      limit %(limit)s::int)
    union all
    (select 13, near.id
       from unnest(%(written)s::text[]) as spelling,
            lateral (select s.id from sendonce.sends s
                      where s.workspace_id = %(workspace_id)s::uuid and s.recipient_id = spelling collate "C"
                      order by s.recorded_at desc
                      limit %(limit)s::int) near
      limit %(limit)s::int)
    union all
    (select 13, near.id
       from unnest(%(lookups)s::bytea[]) as lookup,
            lateral (select s.id from sendonce.sends s
                      where s.workspace_id = %(workspace_id)s::uuid and s.address_lookup = lookup
                      order by s.recorded_at desc limit %(limit)s::int) near
      limit %(limit)s::int)
),
best as (select found.id, min(found.rank) as rank from found group by found.id)
select s.id as send_id, s.mailstream, s.key, coalesce(w.state::text, s.state::text) as state,
       best.rank, s.recorded_at, s.recipient_id
  from best
  join sendonce.sends s on s.id = best.id and s.workspace_id = %(workspace_id)s::uuid
  left join sendonce.work w on w.send_id = s.id
 order by best.rank, s.recorded_at desc, s.id desc
