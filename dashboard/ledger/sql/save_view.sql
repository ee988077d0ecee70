-- Keeps the filters of a list under a name. Empty: the name is taken, or the list has as many views as it may.
insert into sendonce.views (workspace_id, list, name, filters, user_id)
select %(workspace_id)s::uuid, %(list)s::text, %(name)s::text, %(filters)s::jsonb, %(user_id)s::uuid
 where (select count(*) from sendonce.views v
         where v.workspace_id = %(workspace_id)s::uuid and v.list = %(list)s::text) < %(most)s::int
on conflict on constraint one_view_per_name do nothing
returning id
