-- What people decided without all that makes them accountable. Empty: the invariant holds.
select d.send_id, format('decision %%s does not say what was seen', d.id) as what
from sendonce.decisions d where d.seen = '{}' or d.seen = 'null'
union all
select d.send_id, format('decision %%s (%%s) was followed by no move of the same person to %%s', d.id, d.decision, d.after_state)
from sendonce.decisions d
where not exists (
  select from sendonce.moves m
  where m.send_id = d.send_id and m.made_by = 'person' and m.user_id = d.user_id and m.from_state = d.before_state
    and m.to_state = d.after_state and m.at between d.at - interval '1 minute' and d.at + interval '1 minute')
union all
select d.send_id, format('decision %%s is not in the audit log', d.id)
from sendonce.decisions d
where not exists (
  select from sendonce.audit a where a.subject = d.send_id::text and a.user_id = d.user_id
    and a.at between d.at - interval '1 minute' and d.at + interval '1 minute')
union all
select h.send_id, format('a person closed hold %%s, and no decision tells who and why', h.id)
from sendonce.holds h
where h.closed_by = 'person' and not exists (select from sendonce.decisions d where d.hold_id = h.id)
union all
select m.send_id, format('a person made the move %%s, and nothing tells who', m.move)
from sendonce.moves m where m.made_by = 'person' and m.user_id is null
union all
select m.send_id, format('the move %%s of a person is not in the audit log', m.move)
from sendonce.moves m
where m.made_by = 'person' and m.user_id is not null and not exists (
  select from sendonce.audit a
  where a.workspace_id = m.workspace_id and a.user_id = m.user_id
    and a.at between m.at - interval '1 minute' and m.at + interval '1 minute')
limit %(limit)s::int
