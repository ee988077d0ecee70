-- The sends that a complaint may be about: those that are named, and others to the same people around the time. People
-- are known by recipient id in the workspace where one asks, by address in each of these workspaces. Around: what was
-- asked for by the end of the time and had not come to its end long before its beginning, or was asked for again then;
-- without a time, around the newest that is named. `waiting`: what requests in the outbox ask for again. Of each person so many are looked at, the newest first; `cut` tells that there may be more. No
-- row: none.
with named as (
    select s.id, s.recipient_id, s.address_lookup, s.recorded_at, s.stripped_at
      from sendonce.sends s
     where s.id = any(%(named)s::uuid[]) and s.workspace_id = %(workspace_id)s::uuid
),
time as (
    select coalesce(%(since)s::timestamptz, max(recorded_at), now()) as since,
           coalesce(%(until)s::timestamptz, max(recorded_at), now()) as until
      from named
),
walked as (
    select near.*
      from time, (select distinct recipient_id from named where stripped_at is null) person,
           lateral (select n.id, n.recorded_at, n.due_at, n.settled_at, n.delivery_at, row_number() over () as place
                      from (select * from sendonce.sends n
                             where n.workspace_id = %(workspace_id)s::uuid and n.recipient_id = person.recipient_id
                               and n.recorded_at <= time.until + %(margin)s::interval
                             order by n.recorded_at desc limit %(walk)s::int) n) near
    union all
    select near.*
      from time, unnest(%(workspace_ids)s::uuid[]) searched (workspace_id),
           (select address_lookup from named where address_lookup is not null
             union select unnest(%(lookups)s::bytea[])) person,
           lateral (select n.id, n.recorded_at, n.due_at, n.settled_at, n.delivery_at, row_number() over () as place
                      from (select * from sendonce.sends n
                             where n.workspace_id = searched.workspace_id and n.address_lookup = person.address_lookup
                               and n.recorded_at <= time.until + %(margin)s::interval
                             order by n.recorded_at desc limit %(walk)s::int) n) near
),
around as (
    select distinct w.id
      from walked w, time
     where w.settled_at is null
        or greatest(w.recorded_at, w.due_at, w.settled_at, w.delivery_at) >= time.since - %(margin)s::interval
        or w.id = any(%(waiting)s::uuid[])
        or exists (select from sendonce.duplicates d
                    where d.send_id = w.id and d.at between time.since - %(margin)s::interval
                                                        and time.until + %(margin)s::interval)
),
found as (
    select id from named union select id from around
)
select s.id, s.workspace_id, s.recipient_id, s.address_lookup, exists (select from named n where n.id = s.id) as named,
       (select count(*) from found) > %(limit)s::int
         or (select coalesce(max(place), 0) from walked) >= %(walk)s::int as cut
  from found
  join sendonce.sends s on s.id = found.id
 cross join time
 order by named desc,
          greatest(time.since - greatest(s.recorded_at, s.due_at), greatest(s.recorded_at, s.due_at) - time.until,
                   interval '0'),
          s.recorded_at desc, s.id
 limit %(limit)s::int
