-- Files what somebody searched for behind an opaque link, and forgets their look-ups older than a month. Never empty.
with old as (
    delete from sendonce.lookups where user_id = %(user_id)s::uuid and at < now() - interval '30 days'
)
insert into sendonce.lookups (id, workspace_id, user_id, query)
values (%(id)s::text, %(workspace_id)s::uuid, %(user_id)s::uuid, %(query)s::bytea)
returning at
