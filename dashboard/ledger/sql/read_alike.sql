-- Of the newest attempts in doubt at one provider, those that failed in one way: how many turned out taken, how many
-- turned out either way, how many of these were called not taken by the time of the provider's first word alone, and how
-- many there are. Always one row. What a person only believed counts as neither.
with doubted as (
  select t.* from sendonce.accounts a
  cross join lateral (
    select t.send_id, t.n, t.status, t.settled_by, t.started_at, t.error_class, t.phase
    from sendonce.attempts t
    where t.account_id = a.id and t.doubted_at is not null
    order by t.doubted_at desc
    limit %(scanned)s::int) t
  where a.workspace_id = %(workspace_id)s::uuid and a.provider = %(provider)s::text
), judged as (
  select case
      when d.status in ('rejected', 'abandoned') then 'no'
      -- Where no key is honoured, events name the attempt that they are of.
      when h.named then 'yes'
      when h.all_named then 'no'
      -- What the provider told first lies before the next attempt, or after it: then it is that one's.
      when h.first < d.started_at and d.n > 1 then null
      when h.first < x.started_at then 'yes'
      when h.first >= x.started_at then 'no, by time'
      when h.first is not null then 'yes'
      when d.status = 'accepted' and d.settled_by <> 'person' then 'yes'
    end as taken
  from doubted d
  left join sendonce.attempts x on x.send_id = d.send_id and x.n = d.n + 1
  left join lateral (
    select min(e.occurred_at) as first, bool_or(e.attempt = d.n) as named, bool_and(e.attempt is not null) as all_named
    from sendonce.events e where e.send_id = d.send_id) h on true
  where d.error_class is not distinct from %(error_class)s::text and d.phase is not distinct from %(phase)s::text
)
select count(*) filter (where taken = 'yes'), count(taken), count(*), count(*) filter (where taken = 'no, by time')
from judged
