-- Close attempts on evidence: the taken ones keep their message id, other open ones become ambiguous, and an id that no
-- attempt can hold is kept beside them.
with taken as (
  select distinct on (send_id, n) *
  from unnest(%(send_id)b::uuid[], %(n)b::int[], %(provider_message_id)b::text[]) t (send_id, n, provider_message_id)
), doubted as (
  select distinct * from unnest(%(doubted_id)b::uuid[], %(doubted_n)b::int[]) d (send_id, n)
), closed as (
  update sendonce.attempts a
  set status = 'accepted', finished_at = coalesce(a.finished_at, now()),
    settled_by = case when a.status = 'accepted' then a.settled_by else %(settled_by)s::text::sendonce.made_by end,
    provider_message_id = coalesce(a.provider_message_id, t.provider_message_id)
  from taken t where a.send_id = t.send_id and a.n = t.n
  returning a.workspace_id, a.mailstream, a.started_at as at
), in_doubt as (
  update sendonce.attempts a
  set status = 'ambiguous', finished_at = now(), doubted_at = now(), settled_by = %(settled_by)s::text::sendonce.made_by
  from doubted d
  where a.send_id = d.send_id and a.n = d.n and a.status = 'submitting'
    and not exists (select from taken t where t.send_id = d.send_id and t.n = d.n)
  returning a.workspace_id, a.mailstream, a.started_at as at
), more as (
  insert into sendonce.second_message_ids (send_id, account_id, provider_message_id, attempt)
  select * from unnest(%(second_send)b::uuid[], %(second_account)b::uuid[], %(second_id)b::text[], %(second_attempt)b::int[])
  on conflict do nothing
)
insert into sendonce.dirty (workspace_id, mailstream, minute)
select distinct workspace_id, mailstream, date_trunc('minute', at)
from (select * from closed union all select * from in_doubt
  union all select workspace_id, mailstream, now() from in_doubt) changed
