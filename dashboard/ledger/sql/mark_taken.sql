-- A suppressed or cancelled send that evidence shows to have been taken: the state stays, the fact is kept.
update sendonce.sends set taken_at = coalesce(taken_at, now())
where id = any (%(ids)b::uuid[]) and state in ('suppressed', 'cancelled')
