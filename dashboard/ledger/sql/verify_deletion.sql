-- Unsettled sends without content, and facts without their send. Empty: the invariant holds.
select w.send_id, case when m.send_id is null then 'the send is open, and its message is gone'
  when m.address is null then 'the send is open, and its address is gone' else 'the send is open, and its body is gone' end as what
from sendonce.work w left join sendonce.messages m on m.send_id = w.send_id
where w.run_by = 'worker' and (m.address is null or m.body is null)
union all
select a.send_id, format('there is attempt %%s without its send', a.n)
from sendonce.attempts a left join sendonce.sends s on s.id = a.send_id where s.id is null
union all
select e.send_id, format('there is event %%s without its send', e.id)
from sendonce.events e left join sendonce.sends s on s.id = e.send_id where s.id is null
union all
select d.send_id, format('there is delivery %%s without its send', d.id)
from sendonce.duplicates d left join sendonce.sends s on s.id = d.send_id where s.id is null
union all
select s.id, 'the send is stripped, and something personal is left'
from sendonce.sends s left join sendonce.messages m on m.send_id = s.id
where s.stripped_at is not null and (m.send_id is not null or s.address_lookup is not null or s.recipient_id <> ''
  or s.trigger_id <> '' or s.metadata is not null or s.key <> ' ' || s.id
  or exists (select from sendonce.notes n where n.send_id = s.id)
  or exists (select from sendonce.events e where e.send_id = s.id and (e.raw is not null or e.recipient <> uuid_send(s.id))))
limit %(limit)s::int
