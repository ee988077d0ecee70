-- Something was heard of open sends that settles nothing: decisions that have not seen it are refused from now on.
update sendonce.work w set evidence = w.evidence + t.n
from (select send_id, count(*) as n from unnest(%(send_id)b::uuid[]) u (send_id) group by send_id) t
where w.send_id = t.send_id
