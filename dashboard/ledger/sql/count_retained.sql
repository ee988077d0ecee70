-- How many settled sends of each mailstream are past its retention, counted up to a cap. Empty: none keeps anything
-- for a limited time only.
select m.name, m.retain_for, (
    select count(*) from (
      select from sendonce.sends s
      where s.workspace_id = m.workspace_id and s.mailstream = m.name and s.stripped_at is null
        and s.recorded_at < now() - m.retain_for and s.settled_at < now() - m.retain_for
      limit %(cap)s) old)
from sendonce.mailstreams m
where m.workspace_id = %(workspace_id)s::uuid and m.retain_for is not null
order by m.name
