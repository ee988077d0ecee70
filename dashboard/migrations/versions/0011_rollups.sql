-- Roll-ups by account and source. Their rows of before hold figures of accounts under none.
insert into sendonce.dirty (workspace_id, mailstream, minute)
select distinct workspace_id, mailstream, minute from sendonce.rollups where mailstream <> ''
union select e.workspace_id, s.mailstream, date_trunc('minute', least(e.occurred_at, e.received_at))
from sendonce.events e join sendonce.sends s on s.id = e.send_id;

alter table sendonce.rollups
    add column account_id uuid not null default '00000000-0000-0000-0000-000000000000',
    add column source text collate "C" not null default '',
    add column claims bigint not null default 0,
    add column attempts_abandoned bigint not null default 0,
    add column held bigint not null default 0;
alter table sendonce.rollups drop constraint rollups_pkey;
alter table sendonce.rollups add constraint rollups_pkey primary key (workspace_id, minute, mailstream, account_id, source);

create table sendonce.rollup_hours (
    workspace_id uuid not null,
    mailstream text collate "C" not null,
    minute timestamptz not null,
    account_id uuid not null default '00000000-0000-0000-0000-000000000000',
    source text collate "C" not null default '',
    recorded bigint not null default 0,
    duplicate bigint not null default 0,
    in_progress bigint not null default 0,
    mismatch bigint not null default 0,
    due bigint not null default 0,
    due_accepted bigint not null default 0,
    due_stopped bigint not null default 0,
    claims bigint not null default 0,
    attempts bigint not null default 0,
    attempts_accepted bigint not null default 0,
    attempts_rejected bigint not null default 0,
    attempts_ambiguous bigint not null default 0,
    attempts_abandoned bigint not null default 0,
    doubted bigint not null default 0,
    held bigint not null default 0,
    delivered bigint not null default 0,
    bounced bigint not null default 0,
    complained bigint not null default 0,
    event_repeats bigint not null default 0,
    stale_claims bigint not null default 0,
    outbox_age_seconds double precision,
    unknown bigint,
    constraint rollup_hours_pkey primary key (workspace_id, minute, mailstream, account_id, source)
);
create table sendonce.latencies (
    workspace_id uuid not null,
    mailstream text collate "C" not null,
    minute timestamptz not null,
    account_id uuid not null default '00000000-0000-0000-0000-000000000000',
    source text collate "C" not null default '',
    measure text collate "C" not null,
    step smallint not null,
    number bigint not null,
    constraint latencies_pkey primary key (workspace_id, minute, mailstream, account_id, source, measure, step)
);
create table sendonce.latency_hours (
    workspace_id uuid not null,
    mailstream text collate "C" not null,
    minute timestamptz not null,
    account_id uuid not null default '00000000-0000-0000-0000-000000000000',
    source text collate "C" not null default '',
    measure text collate "C" not null,
    step smallint not null,
    number bigint not null,
    constraint latency_hours_pkey primary key (workspace_id, minute, mailstream, account_id, source, measure, step)
);
create table sendonce.carriers (
    workspace_id uuid not null,
    mailstream text collate "C" not null,
    minute timestamptz not null,
    source text collate "C" not null,
    trigger_type text collate "C" not null,
    endpoint text collate "C" not null,
    version text collate "C" not null,
    recorded bigint not null,
    duplicate bigint not null,
    in_progress bigint not null,
    mismatch bigint not null,
    constraint carriers_pkey primary key (workspace_id, minute, mailstream, source, trigger_type, endpoint, version)
);

create table sendonce.markers (
    id bigint generated always as identity,
    workspace_id uuid not null,
    at timestamptz not null,
    kind text collate "C" not null,
    title text not null,
    user_id uuid,
    token_id uuid,
    created_at timestamptz not null default now(),
    constraint markers_pkey primary key (id),
    constraint markers_kind_is_known check (kind in ('deploy', 'incident')),
    constraint markers_title_given check (length(trim(title)) > 0)
);
create index markers_by_time on sendonce.markers (workspace_id, at);

alter table sendonce.duplicates add column endpoint text collate "C";
create index work_unknown on sendonce.work (workspace_id, unknown_since) where unknown_since is not null;
create index events_occurred on sendonce.events using brin (occurred_at) with (pages_per_range = 16, autosummarize = on);
