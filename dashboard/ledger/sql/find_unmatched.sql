-- Kept events whose send is known by now, as match_events.sql says it, without a lock. Empty: nothing to match.
select u.id, coalesce(s.id, b.send_id) as send_id,
  case when s.id is not null then 'send_id' else 'provider_message_id' end as matched_by
from sendonce.unmatched u
left join sendonce.sends s on s.id = u.send_id and s.workspace_id = u.workspace_id
left join lateral (
  select (array_agg(h.send_id))[1] as send_id
  from (
    select a.send_id from sendonce.attempts a
    where s.id is null and a.provider_message_id = u.provider_message_id and a.account_id = u.account_id
    union
    select m.send_id from sendonce.second_message_ids m
    where s.id is null and m.provider_message_id = u.provider_message_id and m.account_id = u.account_id
  ) h
  having count(*) = 1) b on true
where (u.send_id = any (%(send_ids)b::uuid[]) or u.provider_message_id = any (%(message_ids)b::text[])
    or %(after)s::bigint is not null and u.id > %(after)s::bigint)
  and (s.id is not null or b.send_id is not null)
order by u.id
limit %(limit)s
