-- Fold delivery words into their sends, whose rows are locked: the highest rank wins, its earliest time stays, so that
-- any order and any repetition gives the same.
with told as (
  select distinct on (send_id) send_id, word::sendonce.delivery as word, at
  from unnest(%(send_id)b::uuid[], %(word)b::text[], %(at)b::timestamptz[]) t (send_id, word, at)
  order by send_id, word::sendonce.delivery desc, at
)
update sendonce.sends s set delivery = t.word, delivery_at = t.at
from told t
where s.id = t.send_id
  and (s.delivery is null or t.word > s.delivery or t.word = s.delivery and t.at < s.delivery_at)
