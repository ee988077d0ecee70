-- The sends that a later delivery met, as they are now. One that is not returned is gone: try again later.
select s.id, s.outbox_id, s.fingerprint, s.recipient_id, s.address_lookup, s.due_at, s.recorded_at,
  coalesce(w.state::text, s.state::text), w.send_id is null and s.state <> 'open',
  s.stripped_at is not null
from sendonce.sends s left join sendonce.work w on w.send_id = s.id
where s.id = any (%(ids)b::uuid[])
