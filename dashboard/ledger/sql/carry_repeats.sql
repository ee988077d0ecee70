-- Add how often kept events were told while nobody knew their send. Returns nothing.
update sendonce.events e
set repeats = e.repeats + t.repeats, other_ids = e.other_ids + t.other_ids
from unnest(%(fact)b::bytea[], %(repeats)b::int[], %(other_ids)b::int[]) t (fact, repeats, other_ids)
where e.fact = t.fact
