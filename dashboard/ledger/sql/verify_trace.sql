-- Ends that say more, or less, than what is proved. Empty: the invariant holds.
with proved as (
  select send_id from sendonce.attempts where status = 'accepted'
  union
  select send_id from sendonce.events where event_type = any (%(proves)b::text[]::sendonce.event_type[])
)
select s.id as send_id, case
    when s.state = 'accepted' then 'the send is accepted, and nothing proves it'
    when s.taken_at is null then format('the send is %%s and was taken all the same, and does not say so', s.state)
    else format('the send is %%s and said to be taken all the same, and nothing proves it', s.state) end as what
from sendonce.sends s left join proved p on p.send_id = s.id
where s.state = 'accepted' and p.send_id is null and s.reason is distinct from 'marked_by_person'
  or s.state in ('suppressed', 'cancelled') and (p.send_id is not null) <> (s.taken_at is not null)
union all
select s.id, 'a person is said to have marked it accepted, and no decision tells of it'
from sendonce.sends s
where s.state = 'accepted' and s.reason = 'marked_by_person'
  and not exists (select from sendonce.decisions d where d.send_id = s.id and d.decision = 'mark_accepted')
limit %(limit)s::int
