-- Which send each mail answers: that of its address first, then those that its headers name, in their order. Only sends of
-- this workspace. Where a name is that of several messages, as in a call for several, it is the one that went to whoever
-- answers, or none. "full": the send has as many replies as are kept. A mail that is not returned answers no send of it.
with named as (
  select * from unnest(%(i)b::int[], %(rank)b::int[], %(matched_by)b::text[], %(send_id)b::uuid[], %(message_id)b::text[],
    %(sender)b::bytea[]) n (i, rank, matched_by, send_id, message_id, sender)
), found as (
  select n.i, n.rank, s.id as send_id, false as shared
  from named n join sendonce.sends s on s.id = n.send_id and s.workspace_id = %(workspace_id)s::uuid
  union
  select n.i, n.rank, a.send_id, false
  from named n join sendonce.attempts a on a.provider_message_id = n.message_id
    and a.workspace_id = %(workspace_id)s::uuid
  union
  select n.i, n.rank, m.send_id, false
  from named n join sendonce.second_message_ids m on m.provider_message_id = n.message_id
    join sendonce.accounts c on c.id = m.account_id and c.workspace_id = %(workspace_id)s::uuid
  union
  -- A member of a call for several has the id of the call in front of its own, with a slash between: '0' comes after it.
  select n.i, n.rank, a.send_id, true
  from named n cross join lateral (
    select a.send_id from sendonce.attempts a
    where a.provider_message_id >= n.message_id || '/' and a.provider_message_id < n.message_id || '0'
      and a.workspace_id = %(workspace_id)s::uuid
    limit 2000) a
), own as (
  select f.i, f.rank, f.send_id, f.shared, n.matched_by, coalesce(s.address_lookup = n.sender, false) as own
  from found f join named n on n.i = f.i and n.rank = f.rank join sendonce.sends s on s.id = f.send_id
), sole as (
  select i, rank, min(matched_by) as matched_by, (array_agg(send_id order by own desc))[1] as send_id
  from own
  group by i, rank
  having count(*) filter (where own) = 1 or count(*) = 1 and not bool_or(shared)
), first as (
  select distinct on (i) i, send_id, matched_by from sole order by i, rank
)
select f.i, f.send_id, f.matched_by, (
    select count(*) from (
      select from sendonce.mail_replies r where r.send_id = f.send_id limit %(most)s::int) kept) >= %(most)s::int as full
from first f
