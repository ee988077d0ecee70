create type sendonce.alert_state as enum ('quiet', 'rising', 'firing', 'clearing');
create type sendonce.severity as enum ('warning', 'critical');
create type sendonce.notice_kind as enum ('fired', 'cleared', 'test');
create type sendonce.channel_kind as enum ('webhook', 'slack', 'email');

alter table sendonce.workers add column loop_ages jsonb not null default '{}'::jsonb;
create index second_message_ids_seen on sendonce.second_message_ids (seen_at);

CREATE TABLE sendonce.alert_rules (
    workspace_id UUID NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    measure TEXT COLLATE "C" NOT NULL,
    mailstream TEXT COLLATE "C" DEFAULT '' NOT NULL,
    threshold DOUBLE PRECISION NOT NULL,
    clears_at DOUBLE PRECISION NOT NULL,
    hold_for INTERVAL NOT NULL,
    span INTERVAL NOT NULL,
    least INTEGER DEFAULT 0 NOT NULL,
    severity sendonce.severity NOT NULL,
    enabled BOOLEAN DEFAULT true NOT NULL,
    state sendonce.alert_state DEFAULT 'quiet' NOT NULL,
    since TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    value DOUBLE PRECISION,
    looked_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT alert_rules_pkey PRIMARY KEY (workspace_id, name),
    CONSTRAINT alert_rules_clears_below CHECK (clears_at <= threshold),
    CONSTRAINT alert_rules_lengths_make_sense CHECK (hold_for >= interval '0' and span > interval '0' and least >= 0),
    CONSTRAINT alert_rules_workspace_id_fkey FOREIGN KEY(workspace_id) REFERENCES sendonce.workspaces (id)
);
create index alert_rules_by_look ON sendonce.alert_rules (looked_at);
CREATE TABLE sendonce.alerts (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    workspace_id UUID NOT NULL,
    rule TEXT COLLATE "C" NOT NULL,
    measure TEXT COLLATE "C" NOT NULL,
    mailstream TEXT COLLATE "C" DEFAULT '' NOT NULL,
    severity sendonce.severity NOT NULL,
    threshold DOUBLE PRECISION NOT NULL,
    opened_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    value DOUBLE PRECISION NOT NULL,
    worst DOUBLE PRECISION NOT NULL,
    closed_at TIMESTAMP WITH TIME ZONE,
    told_at TIMESTAMP WITH TIME ZONE,
    cleared_told_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT alerts_pkey PRIMARY KEY (id)
);
create index alerts_by_time ON sendonce.alerts (workspace_id, opened_at);
create index alerts_to_clear ON sendonce.alerts (id) WHERE told_at is not null and closed_at is not null and cleared_told_at is null;
create index alerts_to_tell ON sendonce.alerts (id) WHERE told_at is null and closed_at is null;
CREATE UNIQUE INDEX one_open_alert_per_rule ON sendonce.alerts (workspace_id, rule) WHERE closed_at is null;
CREATE TABLE sendonce.alert_channels (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    workspace_id UUID NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    kind sendonce.channel_kind NOT NULL,
    shown TEXT NOT NULL,
    target BYTEA NOT NULL,
    least_severity sendonce.severity DEFAULT 'warning' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT alert_channels_pkey PRIMARY KEY (id),
    CONSTRAINT alert_channels_workspace_id_name_key UNIQUE (workspace_id, name),
    CONSTRAINT alert_channels_workspace_id_fkey FOREIGN KEY(workspace_id) REFERENCES sendonce.workspaces (id)
);
CREATE TABLE sendonce.alert_notices (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    workspace_id UUID NOT NULL,
    alert_id BIGINT,
    channel_id UUID NOT NULL,
    kind sendonce.notice_kind NOT NULL,
    made_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    next_try_at TIMESTAMP WITH TIME ZONE DEFAULT now(),
    tries INTEGER DEFAULT 0 NOT NULL,
    delivered_at TIMESTAMP WITH TIME ZONE,
    gave_up_at TIMESTAMP WITH TIME ZONE,
    last_error TEXT,
    CONSTRAINT alert_notices_pkey PRIMARY KEY (id),
    CONSTRAINT told_once UNIQUE (alert_id, channel_id, kind),
    CONSTRAINT alert_notices_a_test_has_no_alert CHECK ((kind = 'test') = (alert_id is null)),
    CONSTRAINT alert_notices_alert_id_fkey FOREIGN KEY(alert_id) REFERENCES sendonce.alerts (id),
    CONSTRAINT alert_notices_channel_id_fkey FOREIGN KEY(channel_id) REFERENCES sendonce.alert_channels (id) ON DELETE CASCADE
);
create index alert_notices_by_channel ON sendonce.alert_notices (channel_id, id);
create index alert_notices_due ON sendonce.alert_notices (next_try_at) WHERE next_try_at is not null;
CREATE TABLE sendonce.alert_silences (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    workspace_id UUID NOT NULL,
    rule TEXT COLLATE "C" DEFAULT '' NOT NULL,
    mailstream TEXT COLLATE "C" DEFAULT '' NOT NULL,
    made_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    until TIMESTAMP WITH TIME ZONE NOT NULL,
    reason TEXT NOT NULL,
    user_id UUID,
    token_id UUID,
    CONSTRAINT alert_silences_pkey PRIMARY KEY (id),
    CONSTRAINT alert_silences_reason_given CHECK (length(trim(reason)) > 0)
);
create index alert_silences_by_end ON sendonce.alert_silences (workspace_id, until);

-- The rules that every workspace starts with; later ones get them when they are made (ledger/alert_rules.py).
insert into sendonce.alert_rules (workspace_id, name, measure, threshold, clears_at, hold_for, span, least, severity)
select w.id, r.name, r.measure, r.threshold, r.clears_at, r.hold_for, r.span, r.least, r.severity::sendonce.severity
from sendonce.workspaces w cross join (values
  ('outbox-stuck', 'outbox_age', 120::float8, 30::float8, interval '1 min', interval '15 min', 0, 'critical'),
  ('due-not-claimed', 'due_age', 600::float8, 120::float8, interval '2 min', interval '15 min', 0, 'critical'),
  ('stale-claims', 'stale_claims', 0::float8, 0::float8, interval '2 min', interval '15 min', 0, 'warning'),
  ('unknown-many', 'unknown', 50::float8, 20::float8, interval '5 min', interval '15 min', 0, 'warning'),
  ('held-too-long', 'held_age', 14400::float8, 3600::float8, interval '0 min', interval '15 min', 0, 'warning'),
  ('duplicate-claims', 'duplicate_rate', 0.2::float8, 0.1::float8, interval '5 min', interval '15 min', 50, 'warning'),
  ('mismatches', 'mismatches', 0::float8, 0::float8, interval '0 min', interval '15 min', 0, 'warning'),
  ('not-accepted', 'gap_rate', 0.1::float8, 0.05::float8, interval '5 min', interval '30 min', 20, 'critical'),
  ('unanswered-attempts', 'ambiguous_rate', 0.05::float8, 0.02::float8, interval '5 min', interval '10 min', 20, 'warning'),
  ('refused-attempts', 'rejected_rate', 0.2::float8, 0.1::float8, interval '5 min', interval '10 min', 20, 'warning'),
  ('bounces', 'bounce_rate', 0.05::float8, 0.03::float8, interval '10 min', interval '60 min', 100, 'warning'),
  ('complaints', 'complaint_rate', 0.003::float8, 0.001::float8, interval '10 min', interval '1440 min', 1000, 'warning'),
  ('dead-letters', 'dead_letters', 0::float8, 0::float8, interval '0 min', interval '15 min', 0, 'warning'),
  ('account-paused', 'accounts_paused', 0::float8, 0::float8, interval '5 min', interval '15 min', 0, 'critical'),
  ('worker-lost', 'workers_lost', 0::float8, 0::float8, interval '0 min', interval '15 min', 0, 'warning'),
  ('accepted-twice', 'accepted_twice', 0::float8, 0::float8, interval '0 min', interval '60 min', 0, 'critical'),
  ('sending-off', 'sending_off', 0::float8, 0::float8, interval '0 min', interval '15 min', 0, 'critical')
) r (name, measure, threshold, clears_at, hold_for, span, least, severity);
