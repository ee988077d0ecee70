-- Small figures that alert rules watch, from small tables and their indexes. Always one row.
select
  (select count(*) from (select from sendonce.dead_letters d
    where d.workspace_id = %(workspace_id)s::uuid and d.discarded_at is null limit %(counted)s::int) waiting) as dead_letters,
  (select count(*) from sendonce.accounts a where a.workspace_id = %(workspace_id)s::uuid
    and isfinite(a.paused_until) and a.paused_until > now()) as accounts_paused,
  (select count(*) from sendonce.account_checks c join sendonce.accounts a on a.id = c.account_id
    where a.workspace_id = %(workspace_id)s::uuid and c.broke_at is not null) as accounts_broken,
  (select count(*) from sendonce.workers w where w.stopped_at is null
    and w.heartbeat_at > now() - interval '15 minutes' and w.heartbeat_at < now() - %(silence)s::interval) as workers_lost,
  (select count(distinct i.send_id) from sendonce.second_message_ids i join sendonce.sends s on s.id = i.send_id
    where i.seen_at > now() - %(span)s::interval and s.workspace_id = %(workspace_id)s::uuid) as accepted_twice,
  (select count(*) from sendonce.settings s where s.name = 'sending_off') as sending_off
