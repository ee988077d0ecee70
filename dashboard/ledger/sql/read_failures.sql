-- How the newest attempts in doubt of these sends failed, and how many in each way. No row: none is in doubt.
select a.provider, t.error_class, t.phase, count(*)
from unnest(%(ids)b::uuid[]) asked (send_id)
cross join lateral (
  select e.account_id, e.error_class, e.phase from sendonce.attempts e
  where e.send_id = asked.send_id and e.status = 'ambiguous'
  order by e.n desc
  limit 1) t
join sendonce.accounts a on a.id = t.account_id
group by 1, 2, 3
order by 4 desc, 1, 2, 3
