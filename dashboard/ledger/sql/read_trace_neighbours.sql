-- Other sends to the recipient of a send within a day: by recipient id in its own workspace, by address in each of these
-- workspaces; of each kind the nearest before and after it, up to a limit. No row: none.
with this as (
    select id, workspace_id, recipient_id, address_lookup, recorded_at, fingerprint
      from sendonce.sends
     where id = %(send_id)s::uuid and workspace_id = %(workspace_id)s::uuid and stripped_at is null
),
near as (
    select near.id
      from this, lateral (
           (select n.id from sendonce.sends n
             where n.workspace_id = this.workspace_id and n.recipient_id = this.recipient_id
               and n.recorded_at between this.recorded_at - interval '1 day' and this.recorded_at
             order by n.recorded_at desc limit %(limit)s::int)
           union (select n.id from sendonce.sends n
             where n.workspace_id = this.workspace_id and n.recipient_id = this.recipient_id
               and n.recorded_at between this.recorded_at and this.recorded_at + interval '1 day'
             order by n.recorded_at limit %(limit)s::int)
           union select addressed.id
             from unnest(%(workspace_ids)s::uuid[]) searched (workspace_id), lateral (
                  (select n.id from sendonce.sends n
                    where n.workspace_id = searched.workspace_id and n.address_lookup = this.address_lookup
                      and n.recorded_at between this.recorded_at - interval '1 day' and this.recorded_at
                    order by n.recorded_at desc limit %(limit)s::int)
                  union (select n.id from sendonce.sends n
                    where n.workspace_id = searched.workspace_id and n.address_lookup = this.address_lookup
                      and n.recorded_at between this.recorded_at and this.recorded_at + interval '1 day'
                    order by n.recorded_at limit %(limit)s::int)) addressed) near
     where near.id <> this.id
)
select s.id as send_id, s.workspace_id, coalesce(nullif(k.title, ''), k.name) as workspace, s.mailstream, s.key,
       coalesce(w.state::text, s.state::text) as state, s.delivery::text as delivery, s.trigger_type, s.trigger_id,
       s.recorded_at, s.fingerprint = this.fingerprint as same_content
  from this
 cross join near
  join sendonce.sends s on s.id = near.id
  join sendonce.workspaces k on k.id = s.workspace_id
  left join sendonce.work w on w.send_id = s.id
 order by s.recorded_at, s.id
