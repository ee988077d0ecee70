-- Whose events these are: by our id first, by the provider's message id of an attempt on this account second. Never by
-- recipient. An event that is not returned belongs to no known send of the account's workspace.
with told as (
  select * from unnest(%(i)b::int[], %(send_id)b::uuid[], %(provider_message_id)b::text[]) t (i, send_id, provider_message_id)
), by_message as (
  select t.i, a.send_id
  from told t join sendonce.attempts a on a.provider_message_id = t.provider_message_id and a.account_id = %(account_id)s::uuid
  union
  select t.i, m.send_id
  from told t join sendonce.second_message_ids m
    on m.provider_message_id = t.provider_message_id and m.account_id = %(account_id)s::uuid
)
select t.i, coalesce(s.id, b.send_id), case when s.id is not null then 'send_id' else 'provider_message_id' end
from told t
left join sendonce.sends s on s.id = t.send_id and s.workspace_id = %(workspace_id)s::uuid
left join lateral (select b.send_id from by_message b where b.i = t.i limit 1) b on true
where s.id is not null or b.send_id is not null
