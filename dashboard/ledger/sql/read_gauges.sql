-- How a workspace, or one mailstream of it, stands now: from the outbox, the work table and the open holds. Always one row.
with waiting as (
    select o.asked_at from sendonce.outbox o
     where o.workspace_id = %(workspace_id)s::uuid
       and (%(mailstream)s::text is null or o.request ->> 'mailstream' = %(mailstream)s::text)
     order by o.position
     limit %(counted)s::int
),
outbox as (select count(*) as rows, now() - min(asked_at) as age from waiting),
open as (
    select count(*) filter (where state = 'pending') as pending,
           count(*) filter (where state = 'pending' and claim_at <= now()) as pending_due,
           now() - min(claim_at) filter (where state = 'pending' and claim_at <= now()) as pending_due_age,
           count(*) filter (where state = 'claimed') as claimed,
           count(*) filter (where state = 'claimed' and lease_until < now()) as stale_claims,
           count(*) filter (where state = 'unknown') as unknown,
           now() - min(unknown_since) filter (where state = 'unknown') as unknown_age,
           count(*) filter (where state = 'held') as held
      from sendonce.work
     where workspace_id = %(workspace_id)s::uuid and (%(mailstream)s::text is null or mailstream = %(mailstream)s::text)
),
holding as (
    select now() - min(h.opened_at) as age
      from sendonce.holds h
     where h.workspace_id = %(workspace_id)s::uuid and h.closed_at is null
       and (%(mailstream)s::text is null or h.mailstream = %(mailstream)s::text)
)
select now() as at, least(outbox.rows, %(counted)s::int - 1) as outbox, outbox.rows = %(counted)s::int as outbox_is_more,
       case when outbox.rows > 0 then greatest(outbox.age, interval '0') end as outbox_age, open.pending, open.pending_due, open.pending_due_age,
       open.claimed, open.stale_claims, open.unknown, open.unknown_age, open.held, holding.age as held_age,
       (select max(r.minute) + interval '1 minute' from sendonce.rollups r
         where r.workspace_id = %(workspace_id)s::uuid and r.mailstream = '' and r.minute > now() - interval '1 day') as measured_at
  from outbox, open, holding
