-- Lock unknown sends whose time to be looked at has come. Empty: nothing to reconcile. (Held ones wait for a person.)
select send_id
from sendonce.work
where check_at <= now() and state = 'unknown'
order by check_at
limit %(limit)s
for update skip locked
