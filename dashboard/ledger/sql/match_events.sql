-- Whose events these are: by our id first, by the provider's message id of an attempt on this account second, unless
-- several sends have that id: then nobody knows. Never by recipient. An event that is not returned belongs to no known send
-- of the account's workspace.
with told as (
  select * from unnest(%(i)b::int[], %(send_id)b::uuid[], %(provider_message_id)b::text[]) t (i, send_id, provider_message_id)
)
select t.i, coalesce(s.id, b.send_id), case when s.id is not null then 'send_id' else 'provider_message_id' end
from told t
left join sendonce.sends s on s.id = t.send_id and s.workspace_id = %(workspace_id)s::uuid
left join lateral (
  select (array_agg(h.send_id))[1] as send_id
  from (
    select a.send_id from sendonce.attempts a
    where s.id is null and a.provider_message_id = t.provider_message_id and a.account_id = %(account_id)s::uuid
    union
    select m.send_id from sendonce.second_message_ids m
    where s.id is null and m.provider_message_id = t.provider_message_id and m.account_id = %(account_id)s::uuid
  ) h
  having count(*) = 1) b on true
where s.id is not null or b.send_id is not null
