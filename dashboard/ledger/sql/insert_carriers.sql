-- Count who carried the deliveries of these buckets (workspace, mailstream, minute).
with bucket as (
  select distinct * from unnest(%(workspace_id)b::uuid[], %(mailstream)b::text[], %(minute)b::timestamptz[])
    b (workspace_id, mailstream, minute)
), span as (
  select distinct minute, minute + interval '1 minute' as "end" from bucket
), delivered as (
  select s.workspace_id, s.mailstream, m.minute, s.source, s.trigger_type, '' as endpoint, '' as version, 'won' as verdict
  from span m join sendonce.sends s on s.recorded_at >= m.minute and s.recorded_at < m."end"
  union all
  select d.workspace_id, d.mailstream, m.minute, d.source, coalesce(d.trigger_type, ''), coalesce(d.endpoint, ''),
    coalesce(w.version, ''), d.verdict::text
  from span m join sendonce.duplicates d on d.at >= m.minute and d.at < m."end"
  left join sendonce.workers w on w.id = d.worker
)
insert into sendonce.carriers (workspace_id, mailstream, minute, source, trigger_type, endpoint, version, recorded, duplicate,
  in_progress, mismatch)
select d.workspace_id, d.mailstream, d.minute, d.source, d.trigger_type, d.endpoint, d.version,
  count(*) filter (where d.verdict = 'won'), count(*) filter (where d.verdict = 'duplicate'),
  count(*) filter (where d.verdict = 'in_progress'), count(*) filter (where d.verdict = 'mismatch')
from delivered d join bucket b on b.workspace_id = d.workspace_id and b.mailstream = d.mailstream and b.minute = d.minute
group by 1, 2, 3, 4, 5, 6, 7
