-- Lock unknown and held sends whose time to be looked at has come. Empty: nothing to reconcile. (Held ones wait for a
-- person, until their mailstream wants them no more.)
select send_id
from sendonce.work
where check_at <= now()
order by check_at
limit %(limit)s
for update skip locked
