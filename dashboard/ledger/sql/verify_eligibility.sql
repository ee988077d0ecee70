-- Attempts that were started although a suppression was known. Empty: the invariant holds as far as it can be seen.
-- What was stored at the same moment may have been stored a moment later, hence a minute.
select s.id as send_id, format('attempt %%s was started at %%s, and the address was suppressed (%%s) since %%s', a.n, a.started_at,
    p.source, p.said_at) as what
from sendonce.suppressions p
join sendonce.sends s on s.workspace_id = p.workspace_id and s.address_lookup = p.address_lookup
join sendonce.mailstreams m on m.workspace_id = s.workspace_id and m.name = s.mailstream
join sendonce.attempts a on a.send_id = s.id
where p.suppressed and a.started_at > greatest(p.said_at, p.stored_at) + interval '1 minute'
  and (p.scope = 'everything' or p.scope = 'bulk' and m.mail_class in ('lifecycle', 'scheduled', 'campaign')
    or p.scope = 'stream' and p.mailstream = s.mailstream)
limit %(limit)s::int
