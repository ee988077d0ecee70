-- The contents of the newest sends of an account, the newest few of each of its mailstreams; none: nothing was sent, or
-- all of it is scrubbed.
select s.id, m.body
from (select workspace_id, name from sendonce.mailstreams
  where account_id = %(account_id)s::uuid order by name limit %(streams)s::int) t
cross join lateral (
  select s.id, s.recorded_at from sendonce.sends s
  where s.workspace_id = t.workspace_id and s.mailstream = t.name and s.stripped_at is null
  order by s.recorded_at desc limit %(each)s::int) s
join sendonce.messages m on m.send_id = s.id
where m.body is not null
order by s.recorded_at desc
