-- Lock claims past their lease, decided from the work row alone. Empty: no claim is stale.
select send_id
from sendonce.work
where state = 'claimed' and lease_until < now()
order by send_id
limit %(limit)s
for update skip locked
