-- Whether a transaction that has not ended yet may have asked for an email: one that has written to the outbox keeps a
-- lock on it until its end. Our own processes, which take from the outbox, do not count. Always one row; the time is that
-- of the oldest one, or null where the database does not let us see it.
select count(*) > 0 as any, min(a.xact_start) as since
  from pg_locks l
  left join pg_stat_activity a on a.pid = l.pid
 where l.locktype = 'relation' and l.relation = 'sendonce.outbox'::regclass and l.mode = 'RowExclusiveLock' and l.granted
   and l.database = (select oid from pg_database where datname = current_database())
   and l.pid is distinct from pg_backend_pid() and coalesce(a.application_name, '') not like 'sendonce%%'
