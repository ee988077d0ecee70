CREATE TYPE sendonce.mail_class AS ENUM ('security', 'transactional', 'lifecycle', 'scheduled', 'campaign');

CREATE TYPE sendonce.work_state AS ENUM ('pending', 'claimed', 'unknown', 'held');

CREATE TYPE sendonce.send_state AS ENUM ('open', 'accepted', 'failed', 'suppressed', 'cancelled');

CREATE TYPE sendonce.state AS ENUM ('pending', 'claimed', 'unknown', 'held', 'accepted', 'failed', 'suppressed', 'cancelled');

CREATE TYPE sendonce.move AS ENUM ('record', 'claim', 'give_back', 'accept', 'doubt', 'retry_later', 'fail', 'hold', 'suppress', 'cancel', 'release', 'replay');

CREATE TYPE sendonce.made_by AS ENUM ('relay', 'api', 'worker', 'sweep', 'reconcile', 'event', 'person', 'schedule', 'caller');

CREATE TYPE sendonce.attempt_status AS ENUM ('submitting', 'accepted', 'rejected', 'ambiguous', 'abandoned');

CREATE TYPE sendonce.delivery AS ENUM ('accepted', 'deferred', 'delivered', 'failed', 'rejected', 'bounced', 'complained');

CREATE TYPE sendonce.event_type AS ENUM ('accepted', 'deferred', 'delivered', 'bounced', 'rejected', 'failed', 'complained', 'unsubscribed', 'resubscribed', 'opened', 'clicked', 'auto_reply', 'unknown');

CREATE TYPE sendonce.verdict AS ENUM ('won', 'duplicate', 'in_progress', 'mismatch');

CREATE TYPE sendonce.run_by AS ENUM ('worker', 'caller');

CREATE TYPE sendonce.policy AS ENUM ('release', 'hold', 'cancel');

CREATE TYPE sendonce.decision AS ENUM ('resend', 'mark_accepted', 'cancel');

CREATE TYPE sendonce.suppression_scope AS ENUM ('everything', 'bulk', 'stream');

CREATE TYPE sendonce.role AS ENUM ('support', 'operator', 'admin');

CREATE TABLE sendonce.workspaces (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    title TEXT DEFAULT '' NOT NULL,
    paused_at TIMESTAMP WITH TIME ZONE,
    paused_reason TEXT,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT workspaces_pkey PRIMARY KEY (id),
    CONSTRAINT workspaces_name_key UNIQUE (name)
);

CREATE TABLE sendonce.users (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    login TEXT COLLATE "C" NOT NULL,
    name TEXT NOT NULL,
    password_hash TEXT NOT NULL,
    disabled_at TIMESTAMP WITH TIME ZONE,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT users_pkey PRIMARY KEY (id),
    CONSTRAINT users_login_key UNIQUE (login)
);

CREATE TABLE sendonce.login_failures (
    subject BYTEA NOT NULL,
    at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL
);

CREATE INDEX login_failures_subject_at ON sendonce.login_failures (subject, at);

CREATE TABLE sendonce.settings (
    name TEXT COLLATE "C" NOT NULL,
    value JSONB NOT NULL,
    changed_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT settings_pkey PRIMARY KEY (name)
);

CREATE TABLE sendonce.outbox (
    position BIGINT GENERATED ALWAYS AS IDENTITY,
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    send_id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    asked_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    source TEXT COLLATE "C" DEFAULT 'outbox' NOT NULL,
    request JSONB NOT NULL,
    CONSTRAINT outbox_pkey PRIMARY KEY (position)
);

alter table sendonce.outbox set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE sendonce.sends (
    id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    mailstream TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    recipient_id TEXT COLLATE "C" NOT NULL,
    address_lookup BYTEA,
    fingerprint BYTEA NOT NULL,
    outbox_id UUID,
    run_by sendonce.run_by DEFAULT 'worker' NOT NULL,
    state sendonce.send_state DEFAULT 'open' NOT NULL,
    reason TEXT COLLATE "C",
    account_id UUID,
    delivery sendonce.delivery,
    delivery_at TIMESTAMP WITH TIME ZONE,
    taken_at TIMESTAMP WITH TIME ZONE,
    source TEXT COLLATE "C" NOT NULL,
    trigger_type TEXT COLLATE "C" NOT NULL,
    trigger_id TEXT COLLATE "C" NOT NULL,
    triggered_at TIMESTAMP WITH TIME ZONE,
    last_claim INTEGER DEFAULT 0 NOT NULL,
    last_attempt SMALLINT DEFAULT 0 NOT NULL,
    metadata JSONB,
    asked_at TIMESTAMP WITH TIME ZONE NOT NULL,
    recorded_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    due_at TIMESTAMP WITH TIME ZONE NOT NULL,
    settled_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT sends_pkey PRIMARY KEY (id),
    CONSTRAINT one_send_per_key UNIQUE (workspace_id, key, mailstream),
    CONSTRAINT sends_settled_has_time CHECK ((state = 'open') = (settled_at is null)),
    CONSTRAINT sends_end_has_reason CHECK (state not in ('failed', 'suppressed', 'cancelled') or reason is not null),
    CONSTRAINT sends_taken_is_an_ending CHECK (taken_at is null or state in ('suppressed', 'cancelled')),
    CONSTRAINT sends_delivery_has_time CHECK ((delivery is null) = (delivery_at is null)),
    CONSTRAINT sends_key_is_printable CHECK (length(key) between 1 and 255 and key ~ '^[!-~]([ -~]*[!-~])?$')
);

CREATE INDEX sends_by_trigger ON sendonce.sends (workspace_id, trigger_id, recorded_at);

CREATE INDEX sends_by_stream ON sendonce.sends (workspace_id, mailstream, recorded_at);

CREATE INDEX sends_due ON sendonce.sends USING brin (due_at) WITH (pages_per_range = 16, autosummarize = on);

CREATE INDEX sends_by_recipient ON sendonce.sends (workspace_id, recipient_id, recorded_at);

CREATE INDEX sends_recorded ON sendonce.sends USING brin (recorded_at) WITH (pages_per_range = 16, autosummarize = on);

CREATE INDEX sends_by_address ON sendonce.sends (workspace_id, address_lookup, recorded_at);

alter table sendonce.sends set (fillfactor = 50);

CREATE TABLE sendonce.work (
    send_id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    mailstream TEXT COLLATE "C" NOT NULL,
    mail_class sendonce.mail_class NOT NULL,
    run_by sendonce.run_by DEFAULT 'worker' NOT NULL,
    state sendonce.work_state DEFAULT 'pending' NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    recorded_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    due_at TIMESTAMP WITH TIME ZONE NOT NULL,
    claim_at TIMESTAMP WITH TIME ZONE,
    check_at TIMESTAMP WITH TIME ZONE,
    account_id UUID,
    claim_number INTEGER DEFAULT 0 NOT NULL,
    claimed_by UUID,
    claimed_at TIMESTAMP WITH TIME ZONE,
    lease_until TIMESTAMP WITH TIME ZONE,
    lapses SMALLINT DEFAULT 0 NOT NULL,
    last_attempt SMALLINT DEFAULT 0 NOT NULL,
    counted_attempts SMALLINT DEFAULT 0 NOT NULL,
    first_attempt_at TIMESTAMP WITH TIME ZONE,
    open_attempt SMALLINT,
    submit_deadline TIMESTAMP WITH TIME ZONE,
    request_deadline TIMESTAMP WITH TIME ZONE,
    ambiguous_since TIMESTAMP WITH TIME ZONE,
    settled_after TIMESTAMP WITH TIME ZONE,
    unknown_since TIMESTAMP WITH TIME ZONE,
    released_by sendonce.made_by,
    waived TEXT[],
    evidence INTEGER DEFAULT 0 NOT NULL,
    cancel_reason TEXT COLLATE "C",
    cancelled_by UUID,
    CONSTRAINT work_pkey PRIMARY KEY (send_id),
    CONSTRAINT work_claim_at_while_claimable CHECK ((state in ('pending', 'claimed')) = (claim_at is not null)),
    CONSTRAINT work_check_at_while_waiting CHECK ((state in ('unknown', 'held')) = (check_at is not null)),
    CONSTRAINT work_lease_while_claimed CHECK ((state = 'claimed') = (lease_until is not null) and (state = 'claimed') = (claimed_by is not null) and (state = 'claimed') = (claimed_at is not null)),
    CONSTRAINT work_attempt_needs_claim CHECK (open_attempt is null or state in ('claimed')),
    CONSTRAINT work_open_attempt_has_deadlines CHECK ((open_attempt is null) = (submit_deadline is null) and (open_attempt is null) = (request_deadline is null)),
    CONSTRAINT work_lease_outlives_attempt CHECK (open_attempt is null or lease_until > request_deadline),
    CONSTRAINT work_open_attempt_is_last CHECK (open_attempt is null or open_attempt = last_attempt),
    CONSTRAINT work_unknown_has_time CHECK ((state = 'unknown') = (unknown_since is not null)),
    CONSTRAINT work_release_has_maker CHECK (released_by is null or released_by in ('reconcile', 'person')),
    CONSTRAINT work_release_waits_for_attempt CHECK (released_by is null or state in ('pending', 'claimed')),
    CONSTRAINT work_first_attempt_has_time CHECK ((last_attempt = 0) = (first_attempt_at is null)),
    CONSTRAINT work_unknown_is_ambiguous CHECK (state <> 'unknown' or ambiguous_since is not null)
);

CREATE INDEX work_claimable ON sendonce.work (mail_class, workspace_id, mailstream, claim_at);

CREATE INDEX work_to_check ON sendonce.work (check_at) WHERE check_at is not null;

alter table sendonce.work set (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE sendonce.messages (
    send_id UUID NOT NULL,
    address BYTEA,
    body BYTEA,
    CONSTRAINT messages_pkey PRIMARY KEY (send_id)
);

CREATE TABLE sendonce.duplicates (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    send_id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    mailstream TEXT COLLATE "C" NOT NULL,
    outbox_id UUID,
    source TEXT COLLATE "C" NOT NULL,
    trigger_type TEXT COLLATE "C",
    trigger_id TEXT COLLATE "C",
    triggered_at TIMESTAMP WITH TIME ZONE,
    worker UUID,
    at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    state_met sendonce.state NOT NULL,
    verdict sendonce.verdict NOT NULL,
    difference TEXT[],
    CONSTRAINT duplicates_pkey PRIMARY KEY (id),
    CONSTRAINT one_duplicate_per_outbox_row UNIQUE (send_id, outbox_id),
    CONSTRAINT duplicates_the_winner_is_the_send CHECK (verdict <> 'won')
);

CREATE INDEX duplicates_by_trigger ON sendonce.duplicates (workspace_id, trigger_id);

CREATE INDEX duplicates_by_send ON sendonce.duplicates (send_id, at);

CREATE INDEX duplicates_at ON sendonce.duplicates USING brin (at) WITH (pages_per_range = 16, autosummarize = on);

CREATE INDEX duplicates_by_time ON sendonce.duplicates (workspace_id, at);

CREATE TABLE sendonce.dead_letters (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    workspace_id UUID,
    outbox_id UUID,
    account_id UUID,
    source TEXT COLLATE "C" NOT NULL,
    at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    reason TEXT NOT NULL,
    payload BYTEA NOT NULL,
    CONSTRAINT dead_letters_pkey PRIMARY KEY (id)
);

CREATE INDEX dead_letters_by_time ON sendonce.dead_letters (workspace_id, at);

CREATE TABLE sendonce.attempts (
    send_id UUID NOT NULL,
    n SMALLINT NOT NULL,
    workspace_id UUID NOT NULL,
    mailstream TEXT COLLATE "C" NOT NULL,
    account_id UUID NOT NULL,
    batch UUID,
    idempotency_key TEXT COLLATE "C",
    worker UUID NOT NULL,
    claim_number INTEGER NOT NULL,
    claimed_at TIMESTAMP WITH TIME ZONE NOT NULL,
    started_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    submit_deadline TIMESTAMP WITH TIME ZONE NOT NULL,
    request_deadline TIMESTAMP WITH TIME ZONE NOT NULL,
    finished_at TIMESTAMP WITH TIME ZONE,
    status sendonce.attempt_status DEFAULT 'submitting' NOT NULL,
    doubted_at TIMESTAMP WITH TIME ZONE,
    duration_ms INTEGER,
    error_class TEXT COLLATE "C",
    error_code TEXT COLLATE "C",
    reason TEXT,
    phase TEXT COLLATE "C",
    request_id TEXT COLLATE "C",
    provider_message_id TEXT COLLATE "C",
    settled_by sendonce.made_by,
    CONSTRAINT attempts_pkey PRIMARY KEY (send_id, n),
    CONSTRAINT attempts_finished_has_time CHECK ((status = 'submitting') = (finished_at is null)),
    CONSTRAINT attempts_counted_from_one CHECK (n > 0),
    CONSTRAINT attempts_doubt_has_time CHECK (status <> 'ambiguous' or doubted_at is not null)
);

CREATE INDEX attempts_by_message_id ON sendonce.attempts (provider_message_id) WHERE provider_message_id is not null;

CREATE UNIQUE INDEX one_open_attempt_per_send ON sendonce.attempts (send_id) WHERE status = 'submitting';

CREATE INDEX attempts_doubted ON sendonce.attempts (doubted_at) WHERE doubted_at is not null;

CREATE INDEX attempts_started ON sendonce.attempts USING brin (started_at) WITH (pages_per_range = 16, autosummarize = on);

alter table sendonce.attempts set (fillfactor = 70);

CREATE TABLE sendonce.second_message_ids (
    send_id UUID NOT NULL,
    account_id UUID NOT NULL,
    provider_message_id TEXT COLLATE "C" NOT NULL,
    attempt SMALLINT,
    seen_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT second_message_ids_pkey PRIMARY KEY (send_id, provider_message_id)
);

CREATE INDEX second_message_ids_provider_message_id ON sendonce.second_message_ids (provider_message_id);

CREATE TABLE sendonce.moves (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    send_id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    move sendonce.move NOT NULL,
    from_state sendonce.state,
    to_state sendonce.state NOT NULL,
    made_by sendonce.made_by NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    worker UUID,
    user_id UUID,
    claim_number INTEGER,
    attempt SMALLINT,
    event_id BIGINT,
    next_try_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT moves_pkey PRIMARY KEY (id)
);

CREATE INDEX moves_at ON sendonce.moves USING brin (at) WITH (pages_per_range = 16, autosummarize = on);

CREATE INDEX moves_by_end ON sendonce.moves (workspace_id, to_state, at);

CREATE INDEX moves_by_send ON sendonce.moves (send_id, at);

CREATE TABLE sendonce.events (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    workspace_id UUID NOT NULL,
    account_id UUID NOT NULL,
    event_id TEXT COLLATE "C" NOT NULL,
    event_day TEXT COLLATE "C" DEFAULT '' NOT NULL,
    recipient BYTEA DEFAULT '\x' NOT NULL,
    fact BYTEA NOT NULL,
    provider_message_id TEXT COLLATE "C",
    attempt SMALLINT,
    event_type sendonce.event_type NOT NULL,
    occurred_at TIMESTAMP WITH TIME ZONE NOT NULL,
    received_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    bounce_class TEXT COLLATE "C",
    reason TEXT,
    machine BOOLEAN,
    url TEXT,
    repeats INTEGER DEFAULT 0 NOT NULL,
    other_ids INTEGER DEFAULT 0 NOT NULL,
    raw BYTEA,
    send_id UUID NOT NULL,
    matched_by TEXT COLLATE "C" NOT NULL,
    CONSTRAINT events_pkey PRIMARY KEY (id),
    CONSTRAINT one_event_per_id UNIQUE (account_id, event_id, recipient, event_day),
    CONSTRAINT one_event_per_fact UNIQUE (fact)
);

CREATE INDEX events_by_id ON sendonce.events (event_id);

CREATE INDEX events_received ON sendonce.events USING brin (received_at) WITH (pages_per_range = 16, autosummarize = on);

CREATE INDEX events_by_send ON sendonce.events (send_id, occurred_at);

CREATE TABLE sendonce.unmatched (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    workspace_id UUID NOT NULL,
    account_id UUID NOT NULL,
    event_id TEXT COLLATE "C" NOT NULL,
    event_day TEXT COLLATE "C" DEFAULT '' NOT NULL,
    recipient BYTEA DEFAULT '\x' NOT NULL,
    fact BYTEA NOT NULL,
    provider_message_id TEXT COLLATE "C",
    attempt SMALLINT,
    event_type sendonce.event_type NOT NULL,
    occurred_at TIMESTAMP WITH TIME ZONE NOT NULL,
    received_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    bounce_class TEXT COLLATE "C",
    reason TEXT,
    machine BOOLEAN,
    url TEXT,
    repeats INTEGER DEFAULT 0 NOT NULL,
    other_ids INTEGER DEFAULT 0 NOT NULL,
    raw BYTEA,
    send_id UUID,
    CONSTRAINT unmatched_pkey PRIMARY KEY (id),
    CONSTRAINT one_unmatched_per_id UNIQUE (account_id, event_id, recipient, event_day),
    CONSTRAINT one_unmatched_per_fact UNIQUE (fact)
);

CREATE INDEX unmatched_by_event_id ON sendonce.unmatched (event_id);

CREATE INDEX unmatched_by_send ON sendonce.unmatched (send_id);

CREATE INDEX unmatched_by_message_id ON sendonce.unmatched (provider_message_id);

CREATE TABLE sendonce.suppressions (
    workspace_id UUID NOT NULL,
    address_lookup BYTEA NOT NULL,
    scope sendonce.suppression_scope NOT NULL,
    mailstream TEXT COLLATE "C" DEFAULT '' NOT NULL,
    suppressed BOOLEAN NOT NULL,
    said_at TIMESTAMP WITH TIME ZONE NOT NULL,
    stored_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    source TEXT COLLATE "C" NOT NULL,
    account_id UUID,
    event_id TEXT COLLATE "C",
    send_id UUID,
    user_id UUID,
    reason TEXT,
    CONSTRAINT suppressions_pkey PRIMARY KEY (workspace_id, address_lookup, scope, mailstream),
    CONSTRAINT suppressions_stream_is_named CHECK ((scope = 'stream') = (mailstream <> ''))
);

CREATE TABLE sendonce.holds (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    send_id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    mailstream TEXT COLLATE "C" NOT NULL,
    account_id UUID,
    reason TEXT COLLATE "C" NOT NULL,
    waives TEXT[] NOT NULL,
    opened_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    closed_at TIMESTAMP WITH TIME ZONE,
    closed_by sendonce.made_by,
    CONSTRAINT holds_pkey PRIMARY KEY (id),
    CONSTRAINT holds_closed_has_maker CHECK ((closed_at is null) = (closed_by is null))
);

CREATE INDEX holds_by_send ON sendonce.holds (send_id);

CREATE INDEX open_holds ON sendonce.holds (workspace_id, opened_at) WHERE closed_at is null;

CREATE UNIQUE INDEX one_open_hold_per_send ON sendonce.holds (send_id) WHERE closed_at is null;

CREATE TABLE sendonce.audit (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    workspace_id UUID,
    at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    user_id UUID,
    token_id UUID,
    action TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" DEFAULT '' NOT NULL,
    reason TEXT,
    detail JSONB,
    CONSTRAINT audit_pkey PRIMARY KEY (id)
);

CREATE INDEX audit_by_time ON sendonce.audit (workspace_id, at);

CREATE INDEX audit_by_subject ON sendonce.audit (subject);

CREATE TABLE sendonce.lookups (
    id TEXT COLLATE "C" NOT NULL,
    workspace_id UUID NOT NULL,
    user_id UUID NOT NULL,
    query BYTEA NOT NULL,
    at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT lookups_pkey PRIMARY KEY (id)
);

CREATE INDEX lookups_user_id_at ON sendonce.lookups (user_id, at);

CREATE TABLE sendonce.workers (
    id UUID NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    version TEXT COLLATE "C" NOT NULL,
    loops TEXT[] NOT NULL,
    started_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    heartbeat_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    stopped_at TIMESTAMP WITH TIME ZONE,
    in_flight INTEGER DEFAULT 0 NOT NULL,
    refused_moves BIGINT DEFAULT 0 NOT NULL,
    CONSTRAINT workers_pkey PRIMARY KEY (id)
);

CREATE INDEX workers_by_heartbeat ON sendonce.workers (heartbeat_at);

CREATE TABLE sendonce.rollups (
    workspace_id UUID NOT NULL,
    mailstream TEXT COLLATE "C" NOT NULL,
    minute TIMESTAMP WITH TIME ZONE NOT NULL,
    recorded BIGINT DEFAULT 0 NOT NULL,
    duplicate BIGINT DEFAULT 0 NOT NULL,
    in_progress BIGINT DEFAULT 0 NOT NULL,
    mismatch BIGINT DEFAULT 0 NOT NULL,
    due BIGINT DEFAULT 0 NOT NULL,
    due_accepted BIGINT DEFAULT 0 NOT NULL,
    due_stopped BIGINT DEFAULT 0 NOT NULL,
    attempts BIGINT DEFAULT 0 NOT NULL,
    attempts_accepted BIGINT DEFAULT 0 NOT NULL,
    attempts_rejected BIGINT DEFAULT 0 NOT NULL,
    attempts_ambiguous BIGINT DEFAULT 0 NOT NULL,
    doubted BIGINT DEFAULT 0 NOT NULL,
    delivered BIGINT DEFAULT 0 NOT NULL,
    bounced BIGINT DEFAULT 0 NOT NULL,
    complained BIGINT DEFAULT 0 NOT NULL,
    event_repeats BIGINT DEFAULT 0 NOT NULL,
    stale_claims BIGINT DEFAULT 0 NOT NULL,
    outbox_age_seconds DOUBLE PRECISION,
    unknown BIGINT,
    CONSTRAINT rollups_pkey PRIMARY KEY (workspace_id, minute, mailstream)
);

CREATE TABLE sendonce.dirty (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    workspace_id UUID NOT NULL,
    mailstream TEXT COLLATE "C" NOT NULL,
    minute TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT dirty_pkey PRIMARY KEY (id)
);

alter table sendonce.dirty set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE sendonce.accounts (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    workspace_id UUID NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    provider TEXT COLLATE "C" NOT NULL,
    settings JSONB DEFAULT '{}' NOT NULL,
    secrets BYTEA,
    key_window INTERVAL,
    settling_time INTERVAL,
    rate_per_second DOUBLE PRECISION,
    paused_until TIMESTAMP WITH TIME ZONE,
    paused_reason TEXT,
    troubles INTEGER DEFAULT 0 NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT accounts_pkey PRIMARY KEY (id),
    CONSTRAINT accounts_workspace_id_name_key UNIQUE (workspace_id, name),
    CONSTRAINT accounts_pause_has_reason CHECK (paused_until is null or paused_reason is not null),
    CONSTRAINT accounts_workspace_id_fkey FOREIGN KEY(workspace_id) REFERENCES sendonce.workspaces (id)
);

CREATE TABLE sendonce.roles (
    user_id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    role sendonce.role NOT NULL,
    CONSTRAINT roles_pkey PRIMARY KEY (user_id, workspace_id),
    CONSTRAINT roles_user_id_fkey FOREIGN KEY(user_id) REFERENCES sendonce.users (id),
    CONSTRAINT roles_workspace_id_fkey FOREIGN KEY(workspace_id) REFERENCES sendonce.workspaces (id)
);

CREATE TABLE sendonce.sessions (
    token_hash BYTEA NOT NULL,
    user_id UUID NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    seen_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT sessions_pkey PRIMARY KEY (token_hash),
    CONSTRAINT sessions_user_id_fkey FOREIGN KEY(user_id) REFERENCES sendonce.users (id)
);

CREATE INDEX sessions_user_id ON sendonce.sessions (user_id);

CREATE TABLE sendonce.api_tokens (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    workspace_id UUID NOT NULL,
    name TEXT NOT NULL,
    token_hash BYTEA NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    revoked_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT api_tokens_pkey PRIMARY KEY (id),
    CONSTRAINT api_tokens_workspace_id_fkey FOREIGN KEY(workspace_id) REFERENCES sendonce.workspaces (id),
    CONSTRAINT api_tokens_token_hash_key UNIQUE (token_hash)
);

CREATE TABLE sendonce.decisions (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    hold_id BIGINT NOT NULL,
    send_id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    user_id UUID NOT NULL,
    decision sendonce.decision NOT NULL,
    reason TEXT NOT NULL,
    evidence INTEGER NOT NULL,
    seen JSONB NOT NULL,
    before_state sendonce.state NOT NULL,
    after_state sendonce.state NOT NULL,
    at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT decisions_pkey PRIMARY KEY (id),
    CONSTRAINT decisions_reason_given CHECK (length(trim(reason)) > 0),
    CONSTRAINT decisions_hold_id_fkey FOREIGN KEY(hold_id) REFERENCES sendonce.holds (id),
    CONSTRAINT decisions_user_id_fkey FOREIGN KEY(user_id) REFERENCES sendonce.users (id)
);

CREATE INDEX decisions_send_id ON sendonce.decisions (send_id);

CREATE TABLE sendonce.account_tokens (
    account_id UUID NOT NULL,
    tokens DOUBLE PRECISION NOT NULL,
    refilled_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT account_tokens_pkey PRIMARY KEY (account_id),
    CONSTRAINT account_tokens_account_id_fkey FOREIGN KEY(account_id) REFERENCES sendonce.accounts (id) ON DELETE CASCADE
);

CREATE TABLE sendonce.mailstreams (
    workspace_id UUID NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    title TEXT DEFAULT '' NOT NULL,
    owner TEXT DEFAULT '' NOT NULL,
    mail_class sendonce.mail_class NOT NULL,
    account_id UUID NOT NULL,
    unknown_policy sendonce.policy NOT NULL,
    grace INTERVAL NOT NULL,
    too_late_after INTERVAL,
    late_policy sendonce.policy DEFAULT 'hold' NOT NULL,
    max_attempts SMALLINT NOT NULL,
    retry_for INTERVAL NOT NULL,
    paused_at TIMESTAMP WITH TIME ZONE,
    paused_reason TEXT,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT mailstreams_pkey PRIMARY KEY (workspace_id, name),
    CONSTRAINT mailstreams_late_is_never_released CHECK (late_policy <> 'release'),
    CONSTRAINT mailstreams_attempts_positive CHECK (max_attempts > 0),
    CONSTRAINT mailstreams_grace_positive CHECK (grace > interval '0'),
    CONSTRAINT mailstreams_pause_has_reason CHECK ((paused_at is null) = (paused_reason is null)),
    CONSTRAINT mailstreams_workspace_id_fkey FOREIGN KEY(workspace_id) REFERENCES sendonce.workspaces (id),
    CONSTRAINT mailstreams_account_id_fkey FOREIGN KEY(account_id) REFERENCES sendonce.accounts (id)
);
