-- Which send each mail answers: that of its address first, then those that its headers name, in their order. Only sends of
-- this workspace. "full": the send has as many replies as are kept. A mail that is not returned answers no send of it.
with named as (
  select * from unnest(%(i)b::int[], %(rank)b::int[], %(matched_by)b::text[], %(send_id)b::uuid[], %(message_id)b::text[])
    n (i, rank, matched_by, send_id, message_id)
), found as (
  select n.i, n.rank, n.matched_by, s.id as send_id
  from named n join sendonce.sends s on s.id = n.send_id and s.workspace_id = %(workspace_id)s::uuid
  union all
  select n.i, n.rank, n.matched_by, a.send_id
  from named n join sendonce.attempts a on a.provider_message_id = n.message_id
    and a.workspace_id = %(workspace_id)s::uuid
  union all
  select n.i, n.rank, n.matched_by, m.send_id
  from named n join sendonce.second_message_ids m on m.provider_message_id = n.message_id
    join sendonce.accounts c on c.id = m.account_id and c.workspace_id = %(workspace_id)s::uuid
), first as (
  select distinct on (i) i, send_id, matched_by from found order by i, rank, send_id
)
select f.i, f.send_id, f.matched_by, (
    select count(*) from (
      select from sendonce.mail_replies r where r.send_id = f.send_id limit %(most)s::int) kept) >= %(most)s::int as full
from first f
