-- Make tombstones of these locked sends: what they were meant for goes, what became of them stays. The key gives way to
-- the id behind a space, which no key of a request begins with. Returns what was stripped.
with asked as (
  select * from unnest(%(id)b::uuid[], %(fingerprint)b::bytea[]) a (id, fingerprint)
), contents as (
  delete from sendonce.messages m using asked a where m.send_id = a.id
), kept as (
  delete from sendonce.notes n using asked a where n.send_id = a.id
), deliveries as (
  update sendonce.duplicates d set trigger_id = null, triggered_at = null from asked a where d.send_id = a.id
), calls as (
  update sendonce.attempts t set reason = null from asked a where t.send_id = a.id and t.reason is not null
), history as (
  update sendonce.moves v set detail = null from asked a where v.send_id = a.id and v.detail is not null
), facts as (
  update sendonce.events e set recipient = uuid_send(e.send_id), raw = null, reason = null, url = null
  from asked a where e.send_id = a.id
), answers as (
  update sendonce.mail_replies r set sender = null, content = null, own_address = null from asked a where r.send_id = a.id
), decided as (
  update sendonce.decisions d set seen = d.seen - '{key,recipient_id,error}'::text[] from asked a where d.send_id = a.id
)
update sendonce.sends s
set stripped_at = now(), key = ' ' || s.id, recipient_id = '', address_lookup = null, fingerprint = a.fingerprint,
  trigger_id = '', triggered_at = null, metadata = null
from asked a
where s.id = a.id
returning s.id
