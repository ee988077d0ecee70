-- Lock ledger rows in the order of their ids; the work rows of open ones must be locked before.
select id, state::text, mailstream, address_lookup, stripped_at is not null
from sendonce.sends where id = any (%(ids)b::uuid[]) order by id for update
