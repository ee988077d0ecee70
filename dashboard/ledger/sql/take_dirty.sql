-- Take marks of minutes whose roll-ups are to be made again. Empty: nothing to do. A mark that is not visible yet comes
-- with its change, and stays for a later pass.
with taken as (
  select id from sendonce.dirty order by id limit %(limit)s::int for update skip locked
)
delete from sendonce.dirty d using taken t where d.id = t.id
returning d.workspace_id, d.mailstream, d.minute
