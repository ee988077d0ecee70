-- Note whose roll-ups of which minutes must be made again (no time: this minute). Appended, never merged: no two
-- transactions share a row.
insert into sendonce.dirty (workspace_id, mailstream, minute)
select distinct p.workspace_id, p.mailstream, date_trunc('minute', coalesce(p.at, now()))
from unnest(%(workspace_id)b::uuid[], %(mailstream)b::text[], %(at)b::timestamptz[]) as p (workspace_id, mailstream, at)
