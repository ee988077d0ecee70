-- Open sends that were asked for before a moment and are not held, in the order of their ids, behind a given one.
select w.send_id
from sendonce.work w join sendonce.sends s on s.id = w.send_id
where w.state <> 'held' and s.asked_at < %(before)s::timestamptz
  and (%(after)s::uuid is null or w.send_id > %(after)s::uuid)
order by w.send_id
limit %(limit)s::int
