-- How a workspace, or one mailstream of it, stands now: from the outbox, the work table and the open holds. Always one row.
-- Each part walks an index and stops after so many rows, so that a long backlog costs no more than a short one; what is
-- claimed stands at the head of its mailstream's queue, since the oldest is claimed first.
with waiting as (
    select o.asked_at from sendonce.outbox o
     where o.workspace_id = %(workspace_id)s::uuid
       and (%(mailstream)s::text is null or o.request ->> 'mailstream' = %(mailstream)s::text)
     order by o.position
     limit %(counted)s::int
),
outbox as (select count(*) as rows, now() - min(asked_at) as age from waiting),
queued as (
    select q.state, q.claim_at, q.lease_until
      from sendonce.mailstreams m
     cross join lateral (
        select w.state, w.claim_at, w.lease_until from sendonce.work w
         where w.mail_class = m.mail_class and w.workspace_id = m.workspace_id and w.mailstream = m.name
           and w.claim_at is not null
         order by w.claim_at
         limit %(counted)s::int) q
     where m.workspace_id = %(workspace_id)s::uuid
       and (%(mailstream)s::text is null or m.name = %(mailstream)s::text)
),
open as (
    select count(*) filter (where state = 'pending') as pending,
           count(*) filter (where state = 'pending' and claim_at <= now()) as pending_due,
           now() - min(claim_at) filter (where state = 'pending' and claim_at <= now()) as pending_due_age,
           count(*) filter (where state = 'claimed') as claimed,
           count(*) filter (where state = 'claimed' and lease_until < now()) as stale_claims
      from queued
),
unknown as (
    select count(*) as rows, now() - min(unknown_since) as age
      from (select unknown_since from sendonce.work
             where workspace_id = %(workspace_id)s::uuid and unknown_since is not null
               and (%(mailstream)s::text is null or mailstream = %(mailstream)s::text)
             order by unknown_since
             limit %(counted)s::int) u
),
held as (
    select count(*) as rows, now() - min(opened_at) as age
      from (select opened_at from sendonce.holds
             where workspace_id = %(workspace_id)s::uuid and closed_at is null
               and (%(mailstream)s::text is null or mailstream = %(mailstream)s::text)
             order by opened_at
             limit %(counted)s::int) h
)
select now() as at, least(outbox.rows, %(counted)s::int - 1) as outbox, outbox.rows = %(counted)s::int as outbox_is_more,
       case when outbox.rows > 0 then greatest(outbox.age, interval '0') end as outbox_age, open.pending, open.pending_due, open.pending_due_age,
       open.claimed, open.stale_claims, least(unknown.rows, %(counted)s::int - 1) as unknown, unknown.age as unknown_age,
       least(held.rows, %(counted)s::int - 1) as held, held.age as held_age,
       (select max(r.minute) + interval '1 minute' from sendonce.rollups r
         where r.workspace_id = %(workspace_id)s::uuid and r.mailstream = '' and r.minute > now() - interval '1 day') as measured_at,
       (select k.paused_reason from sendonce.workspaces k where k.id = %(workspace_id)s::uuid) as paused_reason
  from outbox, open, unknown, held
