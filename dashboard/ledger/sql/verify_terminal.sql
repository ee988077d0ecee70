-- Sends that went on after their end, and history that the state machine does not allow. Empty: the invariant holds.
-- A transaction's time is when it began: one that waited for a lock seems older than what it waited for. Hence a minute.
with allowed as (
  select * from unnest(%(move)b::text[], %(from_state)b::text[], %(to_state)b::text[], %(made_by)b::text[])
    a (move, from_state, to_state, made_by)
)
select s.id as send_id, format('attempt %%s was started after the send was %%s', a.n, s.state) as what
from sendonce.sends s join sendonce.attempts a on a.send_id = s.id
where s.state in ('accepted', 'suppressed', 'cancelled')
  and (a.n > s.last_attempt or a.started_at > s.settled_at + interval '1 minute')
union all
select m.send_id, format('%%s made the move %%s from %%s to %%s, which is none', m.made_by, m.move,
    coalesce(m.from_state::text, 'nothing'), m.to_state)
from sendonce.moves m
left join allowed a on a.move = m.move::text and a.from_state = coalesce(m.from_state::text, '')
  and a.to_state = m.to_state::text and a.made_by = m.made_by::text
where a.move is null
limit %(limit)s::int
