"""The schema of the ledger, table by table, each index and check with its reason.

Alembic compares the migrated database with this file; a test compares checks, enums and storage settings as well.

Three thoughts shape the hot tables:

* **The ledger row stays still.** ``sends`` is written when recorded and when settled; nothing that changes is indexed,
  so its updates stay heap-only (HOT), and fill factor 50 leaves room for them on the same page.
* **What is open is small.** ``work`` has one narrow row per unsettled send and decides alone who may do what. It is
  made with the send and deleted when the send settles, so claims, gauges and the held queue never read the ledger.
* **What is personal is apart.** Addresses and bodies are encrypted in ``messages`` and scrubbed there.

There is no foreign key between hot tables: checking one locks the row it points to on every write.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    DDL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Double,
    Enum,
    ForeignKey,
    Identity,
    Index,
    Integer,
    Interval,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    event,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from dashboard.lifecycle import (
    MOVES,
    OPEN_STATES,
    SETTLED_STATES,
    AttemptStatus,
    By,
    Decision,
    Delivery,
    EventType,
    MailClass,
    RunBy,
    State,
    Verdict,
)

SCHEMA = "sendonce"

metadata = MetaData(
    schema=SCHEMA,
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
        "ix": "%(table_name)s_%(column_0_N_name)s",
    },
)


def pg_enum(name: str, *values: str) -> Enum:
    """A PostgreSQL enum of the schema, in the given order."""
    return Enum(*map(str, values), name=name, metadata=metadata, schema=SCHEMA)


class Policy(StrEnum):
    """What becomes of an unknown send after its grace period, and of one that is too late."""

    RELEASE = "release"  # only where the account honours keys; else the send is held
    HOLD = "hold"
    CANCEL = "cancel"


class SuppressionScope(StrEnum):
    """How far a suppression reaches."""

    EVERYTHING = "everything"  # a hard bounce: no mail of any class
    BULK = "bulk"  # a complaint: lifecycle, scheduled and campaign
    STREAM = "stream"  # an unsubscribe: its mailstream


class Stage(StrEnum):
    """How far a decision about many held sends has come."""

    PREVIEW = "preview"  # only its maker has seen it
    WAITING = "waiting"  # for a second person
    RUNNING = "running"  # a worker carries it out, send by send
    DONE = "done"
    WITHDRAWN = "withdrawn"  # by its maker
    DECLINED = "declined"  # by the second person
    EXPIRED = "expired"  # nobody agreed in time


class Role(StrEnum):
    """What a person may do in a workspace; each includes the one before."""

    SUPPORT = "support"
    OPERATOR = "operator"
    ADMIN = "admin"


class Right(StrEnum):
    """What a person may see of other people, beside their role. Each is a column of ``roles``."""

    REVEAL = "reveal"  # whole addresses; everybody has it unless it is taken away
    MESSAGES = "messages"  # what a recipient saw; operators and admins have it, support where it is given


class AlertState(StrEnum):
    """Where a rule stands. It fires, and it is quiet again, only after its measure stayed so for as long as it says."""

    QUIET = "quiet"
    RISING = "rising"  # over the threshold, not for long enough yet
    FIRING = "firing"
    CLEARING = "clearing"  # below again, not for long enough yet


class Severity(StrEnum):
    """How urgent an alert is."""

    WARNING = "warning"  # look at it today
    CRITICAL = "critical"  # look at it now


class NoticeKind(StrEnum):
    """What a notice tells."""

    FIRED = "fired"
    CLEARED = "cleared"
    TEST = "test"


class ChannelKind(StrEnum):
    """How a notice goes out."""

    WEBHOOK = "webhook"
    SLACK = "slack"
    EMAIL = "email"


mail_class = pg_enum("mail_class", *MailClass)  # the order is the claiming order
work_state = pg_enum("work_state", *OPEN_STATES)
send_state = pg_enum("send_state", "open", *SETTLED_STATES)  # ``open`` is never shown: the work row tells more
any_state = pg_enum("state", *State)
move_name = pg_enum("move", *(move.name for move in MOVES))
made_by = pg_enum("made_by", *By)
attempt_status = pg_enum("attempt_status", *AttemptStatus)
delivery_word = pg_enum("delivery", *Delivery)  # the order is the rank of the fold
event_type = pg_enum("event_type", *EventType)
verdict = pg_enum("verdict", *Verdict)
run_by = pg_enum("run_by", *RunBy)
policy = pg_enum("policy", *Policy)
decision = pg_enum("decision", *Decision)
suppression_scope = pg_enum("suppression_scope", *SuppressionScope)
role = pg_enum("role", *Role)
alert_state = pg_enum("alert_state", *AlertState)
severity = pg_enum("severity", *Severity)
notice_kind = pg_enum("notice_kind", *NoticeKind)
channel_kind = pg_enum("channel_kind", *ChannelKind)
stage = pg_enum("stage", *Stage)

Exact = Text(collation="C")
"""Names, keys and ids: compared byte for byte, so that a plain index also serves prefix search."""

Time = DateTime(timezone=True)
NOW = text("now()")
BLOCK_RANGES = {"pages_per_range": 16, "autosummarize": "on"}
"""For block-range indexes: what is not summarised yet is read whole, so it must not wait for the next vacuum."""

EMPTY = text("''")
EMPTY_BYTES = text("''::bytea")


# ── who and what is configured ───────────────────────────────────────────────────────────────────────────────────────

workspaces = Table(
    "workspaces",
    metadata,
    Column("id", Uuid, primary_key=True, server_default=text("gen_random_uuid()")),
    Column("name", Exact, nullable=False, unique=True),
    Column("title", Text, nullable=False, server_default=EMPTY),
    Column("paused_at", Time),
    Column("paused_reason", Text),
    Column("ticket_url", Text),  # where its tickets are: https://…/{ticket}
    Column("created_at", Time, nullable=False, server_default=NOW),
    Column("second_person_above", Integer, server_default=text("100")),  # held sends decided at once; null: never
    Column("keep_replies", Boolean, nullable=False, server_default=text("false")),  # what replies say, not only that
    CheckConstraint("second_person_above >= 0", name="second_person_number"),
)

accounts = Table(
    "accounts",
    metadata,
    # Opaque and random: it is the secret part of the webhook address.
    Column("id", Uuid, primary_key=True, server_default=text("gen_random_uuid()")),
    Column("workspace_id", Uuid, ForeignKey("workspaces.id"), nullable=False),
    Column("name", Exact, nullable=False),
    Column("provider", Exact, nullable=False),
    Column("settings", JSONB, nullable=False, server_default=text("'{}'")),
    Column("secrets", LargeBinary),  # encrypted JSON of the secret settings
    Column("endpoint", LargeBinary, nullable=False, server_default=EMPTY_BYTES),  # keyed hash: where, and as whom
    Column("key_window", Interval),  # how long this account honours our idempotency key; null: it does not
    Column("settling_time", Interval),  # after which "not found" is proof; null: it never is
    Column("rate_per_second", Double),  # null: unlimited
    Column("paused_until", Time),  # 'infinity' when a person must resume it
    Column("paused_reason", Text),
    Column("troubles", Integer, nullable=False, server_default=text("0")),  # account-scoped refusals in a row
    Column("created_at", Time, nullable=False, server_default=NOW),
    UniqueConstraint("workspace_id", "name"),
    CheckConstraint("paused_until is null or paused_reason is not null", name="pause_has_reason"),
)

account_tokens = Table(
    # The rate limit of an account, shared by all workers: a bucket of one second, refilled by the clock.
    "account_tokens",
    metadata,
    Column("account_id", Uuid, ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True),
    Column("tokens", Double, nullable=False),
    Column("refilled_at", Time, nullable=False, server_default=NOW),
)

account_checks = Table(
    # What the last check of an account found. One worker checks an account at a time, once a day and when asked.
    "account_checks",
    metadata,
    Column("account_id", Uuid, ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True),
    Column("taken_at", Time),  # since when a worker is at it
    Column("asked_at", Time),  # somebody wants to know it now
    Column("checked_at", Time),
    Column("findings", JSONB, nullable=False, server_default=text("'[]'")),
    Column("standing", JSONB, nullable=False, server_default=text("'{}'")),  # each question's last known answer
    Column("broke_at", Time),  # since when something is wrong that was well before
)

mailstreams = Table(
    "mailstreams",
    metadata,
    Column("workspace_id", Uuid, ForeignKey("workspaces.id"), nullable=False),
    Column("name", Exact, nullable=False),  # never changes: it is part of every send id
    Column("title", Text, nullable=False, server_default=EMPTY),
    Column("owner", Text, nullable=False, server_default=EMPTY),
    Column("mail_class", mail_class, nullable=False),
    Column("account_id", Uuid, ForeignKey("accounts.id"), nullable=False),
    Column("unknown_policy", policy, nullable=False),
    Column("grace", Interval, nullable=False),
    Column("too_late_after", Interval),
    Column("late_policy", policy, nullable=False, server_default=text("'hold'")),
    Column("max_attempts", SmallInteger, nullable=False),
    Column("retry_for", Interval, nullable=False),
    Column("retain_for", Interval),  # after its end only a tombstone of a send stays; null: all is kept
    Column("paused_at", Time),
    Column("paused_reason", Text),
    Column("created_at", Time, nullable=False, server_default=NOW),
    Column("second_person", Boolean, nullable=False, server_default=text("false")),  # for each of its held sends
    Column("batches", Boolean, nullable=False, server_default=text("false")),  # its sends may share a call with others
    Column("reply_domain", Exact),  # where mail answers its sends; null: a send gets no reply address
    PrimaryKeyConstraint("workspace_id", "name"),
    CheckConstraint("late_policy <> 'release'", name="late_is_never_released"),
    CheckConstraint("max_attempts > 0", name="attempts_positive"),
    CheckConstraint("grace > interval '0'", name="grace_positive"),
    CheckConstraint("retain_for > interval '0'", name="retention_positive"),
    CheckConstraint("(paused_at is null) = (paused_reason is null)", name="pause_has_reason"),
    CheckConstraint(
        "not batches or mail_class in ('lifecycle', 'scheduled', 'campaign')",
        name="only_bulk_batches",
    ),
)

users = Table(
    "users",
    metadata,
    Column("id", Uuid, primary_key=True, server_default=text("gen_random_uuid()")),
    Column("login", Exact, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("password_hash", Text, nullable=False),  # argon2id
    Column("disabled_at", Time),
    Column("created_at", Time, nullable=False, server_default=NOW),
)

roles = Table(
    "roles",
    metadata,
    Column("user_id", Uuid, ForeignKey("users.id"), nullable=False),
    Column("workspace_id", Uuid, ForeignKey("workspaces.id"), nullable=False),
    Column("role", role, nullable=False),
    Column("reveal", Boolean, nullable=False, server_default=text("true")),
    Column("messages", Boolean, nullable=False, server_default=text("false")),
    PrimaryKeyConstraint("user_id", "workspace_id"),
)

sessions = Table(
    "sessions",
    metadata,
    Column("token_hash", LargeBinary, primary_key=True),  # SHA-256: a stolen table opens no session
    Column("user_id", Uuid, ForeignKey("users.id"), nullable=False),
    Column("created_at", Time, nullable=False, server_default=NOW),
    Column("seen_at", Time, nullable=False, server_default=NOW),
    Column("expires_at", Time, nullable=False),
    Index(None, "user_id"),
)

login_failures = Table(
    # Guessing is slowed down by login name and by client, counted here so that all web processes agree.
    "login_failures",
    metadata,
    Column("subject", LargeBinary, nullable=False),  # keyed hash of login name or client address
    Column("at", Time, nullable=False, server_default=NOW),
    Index(None, "subject", "at"),
)

api_tokens = Table(
    "api_tokens",
    metadata,
    Column("id", Uuid, primary_key=True, server_default=text("gen_random_uuid()")),
    Column("workspace_id", Uuid, ForeignKey("workspaces.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("token_hash", LargeBinary, nullable=False, unique=True),  # SHA-256 of a random token
    Column("created_at", Time, nullable=False, server_default=NOW),
    Column("revoked_at", Time),
    Column("user_id", Uuid, ForeignKey("users.id")),  # whom it acts for; null: a producer, which decides nothing
)

settings = Table(
    # Facts about this ledger itself: where it lives (DESIGN §5.22), which keys it was made with.
    "settings",
    metadata,
    Column("name", Exact, primary_key=True),
    Column("value", JSONB, nullable=False),
    Column("changed_at", Time, nullable=False, server_default=NOW),
)


# ── asking ───────────────────────────────────────────────────────────────────────────────────────────────────────────

outbox = Table(
    # Written in somebody else's transaction, deleted when relayed. ``position`` only orders the pick-up: sequences
    # commit out of order, so it is never a high-water mark.
    "outbox",
    metadata,
    Column("position", BigInteger, Identity(always=True), primary_key=True),
    Column("id", Uuid, nullable=False, server_default=text("gen_random_uuid()")),  # lives on in the ledger
    Column("send_id", Uuid, nullable=False),
    Column("workspace_id", Uuid, nullable=False),
    Column("asked_at", Time, nullable=False, server_default=text("clock_timestamp()")),
    Column("source", Exact, nullable=False, server_default=text("'outbox'")),
    Column("request", JSONB, nullable=False),
)

sends = Table(
    "sends",
    metadata,
    Column("id", Uuid, primary_key=True),  # uuid5 of workspace, mailstream and key: inserting it twice fails here
    Column("workspace_id", Uuid, nullable=False),
    Column("mailstream", Exact, nullable=False),
    Column("key", Exact, nullable=False),
    Column("recipient_id", Exact, nullable=False),
    Column("address_lookup", LargeBinary),  # keyed hash; null where the caller sends by itself and gave no address
    Column("fingerprint", LargeBinary, nullable=False),
    Column("outbox_id", Uuid),
    Column("run_by", run_by, nullable=False, server_default=text("'worker'")),
    Column("state", send_state, nullable=False, server_default=text("'open'")),
    Column("reason", Exact),
    Column("account_id", Uuid),
    Column("delivery", delivery_word),
    Column("delivery_at", Time),
    Column("taken_at", Time),  # a suppressed or cancelled send that evidence shows to have been taken all the same
    Column("source", Exact, nullable=False),
    Column("trigger_type", Exact, nullable=False),
    Column("trigger_id", Exact, nullable=False),
    Column("triggered_at", Time),
    Column("last_claim", Integer, nullable=False, server_default=text("0")),
    Column("last_attempt", SmallInteger, nullable=False, server_default=text("0")),
    Column("metadata", JSONB),
    Column("asked_at", Time, nullable=False),
    Column("recorded_at", Time, nullable=False, server_default=NOW),
    Column("due_at", Time, nullable=False),
    Column("settled_at", Time),
    Column("stripped_at", Time),  # since when it is a tombstone, with nothing personal in it
    # The literal promise, ordered so that it serves prefix search by key as well.
    UniqueConstraint("workspace_id", "key", "mailstream", name="one_send_per_key"),
    Index("sends_by_recipient", "workspace_id", "recipient_id", "recorded_at"),
    Index("sends_by_address", "workspace_id", "address_lookup", "recorded_at"),
    Index("sends_by_trigger", "workspace_id", "trigger_id", "recorded_at"),
    # The newest first, as lists show them; the oldest first, as retention comes to them.
    Index(
        "sends_by_stream",
        "workspace_id",
        "mailstream",
        "recorded_at",
        postgresql_where=text("stripped_at is null"),
    ),
    # For roll-ups: the rows of a minute lie together, so a block-range index finds them for next to nothing.
    Index("sends_due", "due_at", postgresql_using="brin", postgresql_with=BLOCK_RANGES),
    Index("sends_recorded", "recorded_at", postgresql_using="brin", postgresql_with=BLOCK_RANGES),
    CheckConstraint("(state = 'open') = (settled_at is null)", name="settled_has_time"),
    CheckConstraint("state not in ('failed', 'suppressed', 'cancelled') or reason is not null", name="end_has_reason"),
    CheckConstraint("taken_at is null or state in ('suppressed', 'cancelled')", name="taken_is_an_ending"),
    CheckConstraint("(delivery is null) = (delivery_at is null)", name="delivery_has_time"),
    CheckConstraint(
        "stripped_at is not null or length(key) between 1 and 255 and key ~ '^[!-~]([ -~]*[!-~])?$'",
        name="key_is_printable",
    ),
    CheckConstraint("stripped_at is null or state <> 'open'", name="stripped_is_settled"),
)

work = Table(
    "work",
    metadata,
    Column("send_id", Uuid, primary_key=True),
    Column("workspace_id", Uuid, nullable=False),
    Column("mailstream", Exact, nullable=False),
    Column("mail_class", mail_class, nullable=False),
    Column("run_by", run_by, nullable=False, server_default=text("'worker'")),
    Column("state", work_state, nullable=False, server_default=text("'pending'")),
    Column("reason", Exact, nullable=False),
    Column("recorded_at", Time, nullable=False, server_default=NOW),
    Column("due_at", Time, nullable=False),
    Column("claim_at", Time),  # when it may be claimed; empty while unknown or held. A claim leaves it as it is
    Column("check_at", Time),  # when the reconciler looks next; only while unknown or held
    Column("account_id", Uuid),  # fixed by the first attempt
    Column("claim_number", Integer, nullable=False, server_default=text("0")),
    Column("claimed_by", Uuid),
    Column("claimed_at", Time),
    Column("lease_until", Time),
    Column("lapses", SmallInteger, nullable=False, server_default=text("0")),  # claims that ended without an attempt
    Column("last_attempt", SmallInteger, nullable=False, server_default=text("0")),
    Column("counted_attempts", SmallInteger, nullable=False, server_default=text("0")),
    Column("first_attempt_at", Time),
    Column("open_attempt", SmallInteger),
    Column("submit_deadline", Time),
    Column("request_deadline", Time),
    Column("ambiguous_since", Time),  # start of the first attempt that may have been taken: the key counts from here
    Column("settled_after", Time),  # before which no "not found" and no release counts (DESIGN §5.6)
    Column("unknown_since", Time),
    Column("released_by", made_by),  # a release that no attempt has used yet: reconcile (policy) or person
    Column("waived", ARRAY(Text)),  # rules that a person waived for the next attempt
    Column("evidence", Integer, nullable=False, server_default=text("0")),
    Column("cancel_reason", Exact),  # a cancel that met an open attempt, remembered
    Column("cancelled_by", Uuid),
    # The claim reads this in class order, round robin over the mailstreams. No word of the state, so claims stay HOT.
    Index("work_claimable", "mail_class", "workspace_id", "mailstream", "claim_at"),
    Index("work_to_check", "check_at", postgresql_where=text("check_at is not null")),
    # For the gauge. A claim does not touch it, so claims stay HOT.
    Index("work_unknown", "workspace_id", "unknown_since", postgresql_where=text("unknown_since is not null")),
    CheckConstraint("(state in ('pending', 'claimed')) = (claim_at is not null)", name="claim_at_while_claimable"),
    CheckConstraint("(state in ('unknown', 'held')) = (check_at is not null)", name="check_at_while_waiting"),
    CheckConstraint(
        "(state = 'claimed') = (lease_until is not null)"
        " and (state = 'claimed') = (claimed_by is not null) and (state = 'claimed') = (claimed_at is not null)",
        name="lease_while_claimed",
    ),
    CheckConstraint("open_attempt is null or state in ('claimed')", name="attempt_needs_claim"),
    CheckConstraint(
        "(open_attempt is null) = (submit_deadline is null) and (open_attempt is null) = (request_deadline is null)",
        name="open_attempt_has_deadlines",
    ),
    CheckConstraint("open_attempt is null or lease_until > request_deadline", name="lease_outlives_attempt"),
    CheckConstraint("open_attempt is null or open_attempt = last_attempt", name="open_attempt_is_last"),
    CheckConstraint("(state = 'unknown') = (unknown_since is not null)", name="unknown_has_time"),
    CheckConstraint("released_by is null or released_by in ('reconcile', 'person')", name="release_has_maker"),
    CheckConstraint("released_by is null or state in ('pending', 'claimed')", name="release_waits_for_attempt"),
    CheckConstraint("(last_attempt = 0) = (first_attempt_at is null)", name="first_attempt_has_time"),
    CheckConstraint("state <> 'unknown' or ambiguous_since is not null", name="unknown_is_ambiguous"),
)

messages = Table(
    "messages",
    metadata,
    Column("send_id", Uuid, primary_key=True),
    Column("address", LargeBinary),  # AES-256-GCM, the send id as associated data; null once scrubbed
    Column("body", LargeBinary),
    # Keyed hash of workspace and subject, and when it was recorded: the newest of a subject are found by both.
    Column("subject_lookup", LargeBinary),
    Column("subject_at", Time),
    Index(
        "messages_by_subject",
        "subject_lookup",
        "subject_at",
        postgresql_where=text("subject_lookup is not null"),
    ),
    CheckConstraint("(subject_lookup is null) = (subject_at is null)", name="subject_has_time"),
)

duplicates = Table(
    # Every later delivery of a key. Deliveries of a send = 1 + its rows here.
    "duplicates",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("send_id", Uuid, nullable=False),
    Column("workspace_id", Uuid, nullable=False),
    Column("mailstream", Exact, nullable=False),
    Column("outbox_id", Uuid),
    Column("source", Exact, nullable=False),
    Column("trigger_type", Exact),
    Column("trigger_id", Exact),
    Column("triggered_at", Time),
    Column("worker", Uuid),
    Column("at", Time, nullable=False, server_default=NOW),
    Column("state_met", any_state, nullable=False),
    Column("verdict", verdict, nullable=False),
    Column("difference", ARRAY(Text)),  # which fields came with other values, never the values
    Column("endpoint", Exact),  # where the trigger came in, as the request told it
    Index("duplicates_by_send", "send_id", "at"),
    Index("duplicates_by_verdict", "workspace_id", "verdict", "at"),  # a list is of one verdict; some are rare
    Index("duplicates_by_trigger", "workspace_id", "trigger_id", "at"),
    Index("duplicates_at", "at", postgresql_using="brin", postgresql_with=BLOCK_RANGES),
    UniqueConstraint("send_id", "outbox_id", name="one_duplicate_per_outbox_row"),
    CheckConstraint("verdict <> 'won'", name="the_winner_is_the_send"),
)

dead_letters = Table(
    "dead_letters",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("workspace_id", Uuid),
    Column("outbox_id", Uuid),
    Column("account_id", Uuid),
    Column("source", Exact, nullable=False),
    Column("at", Time, nullable=False, server_default=NOW),
    Column("reason", Text, nullable=False),
    Column("payload", LargeBinary, nullable=False),  # encrypted
    Column("digest", LargeBinary),  # keyed, of the payload of a webhook: the provider may send it again
    Column("repeats", Integer, nullable=False, server_default=text("0")),
    Column("discarded_at", Time),  # since then its payload is empty; who and why stands in the audit log
    Index("dead_letters_by_time", "workspace_id", "at"),
    Index("dead_letters_once", "account_id", "digest", unique=True),
)


# ── trying ───────────────────────────────────────────────────────────────────────────────────────────────────────────

attempts = Table(
    # Carries the facts of the straight path (who claimed, when, what came of it), so that a send which went straight
    # through needs no history beside it.
    "attempts",
    metadata,
    Column("send_id", Uuid, nullable=False),
    Column("n", SmallInteger, nullable=False),
    Column("workspace_id", Uuid, nullable=False),
    Column("mailstream", Exact, nullable=False),
    Column("account_id", Uuid, nullable=False),
    Column("endpoint", LargeBinary, nullable=False, server_default=EMPTY_BYTES),  # the account's, at that moment
    Column("batch", Uuid),  # the call that it shared with others; null: it went alone
    Column("idempotency_key", Exact),  # the send's id, or the batch's
    Column("worker", Uuid, nullable=False),
    Column("claim_number", Integer, nullable=False),
    Column("claimed_at", Time, nullable=False),
    Column("started_at", Time, nullable=False, server_default=NOW),
    Column("submit_deadline", Time, nullable=False),
    Column("request_deadline", Time, nullable=False),
    Column("finished_at", Time),
    Column("status", attempt_status, nullable=False, server_default=text("'submitting'")),
    Column("doubted_at", Time),  # when it first became ambiguous: stays in the trace after evidence settles it
    Column("duration_ms", Integer),  # of the call itself, on the worker's clock
    Column("error_class", Exact),
    Column("error_code", Exact),
    Column("reason", Text),
    Column("phase", Exact),
    Column("request_id", Exact),
    Column("provider_message_id", Exact),
    Column("settled_by", made_by),  # who told what became of it
    PrimaryKeyConstraint("send_id", "n"),
    Index("one_open_attempt_per_send", "send_id", unique=True, postgresql_where=text("status = 'submitting'")),
    Index(
        "attempts_by_message_id",
        "provider_message_id",
        postgresql_where=text("provider_message_id is not null"),
    ),
    Index("attempts_by_batch", "batch", postgresql_where=text("batch is not null")),
    Index("attempts_started", "started_at", postgresql_using="brin", postgresql_with=BLOCK_RANGES),
    # Few attempts are ever in doubt.
    Index("attempts_doubted", "doubted_at", postgresql_where=text("doubted_at is not null")),
    # The newest of one account: how those that failed like this one ended.
    Index(
        "attempts_doubted_by_account",
        "account_id",
        "doubted_at",
        postgresql_where=text("doubted_at is not null"),
    ),
    CheckConstraint("(status = 'submitting') = (finished_at is null)", name="finished_has_time"),
    CheckConstraint("n > 0", name="counted_from_one"),
    CheckConstraint("status <> 'ambiguous' or doubted_at is not null", name="doubt_has_time"),
)

second_message_ids = Table(
    # A provider's second id for one send means that it was accepted more than once. Kept for look-up, told for ever.
    "second_message_ids",
    metadata,
    Column("send_id", Uuid, nullable=False),
    Column("account_id", Uuid, nullable=False),
    Column("provider_message_id", Exact, nullable=False),
    Column("attempt", SmallInteger),
    Column("seen_at", Time, nullable=False, server_default=NOW),
    PrimaryKeyConstraint("send_id", "provider_message_id"),
    Index(None, "provider_message_id"),
    Index("second_message_ids_seen", "seen_at"),  # for the alert: there are few, and hardly ever a new one
)

moves = Table(
    # Every move but those of the straight path (record, claim, accept by the worker's own attempt).
    "moves",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("send_id", Uuid, nullable=False),
    Column("workspace_id", Uuid, nullable=False),
    Column("at", Time, nullable=False, server_default=text("clock_timestamp()")),
    Column("move", move_name, nullable=False),
    Column("from_state", any_state),
    Column("to_state", any_state, nullable=False),
    Column("made_by", made_by, nullable=False),
    Column("reason", Exact, nullable=False),
    Column("worker", Uuid),
    Column("user_id", Uuid),
    Column("claim_number", Integer),
    Column("attempt", SmallInteger),
    Column("event_id", BigInteger),
    Column("next_try_at", Time),
    Column("detail", Text),  # what about a template could not be filled in; goes with the message
    Index("moves_by_send", "send_id", "at"),
    Index("moves_by_end", "workspace_id", "to_state", "at"),
    Index("moves_at", "at", postgresql_using="brin", postgresql_with=BLOCK_RANGES),
)


# ── hearing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _event_columns() -> tuple[Column[object], ...]:
    """What an event holds, whether it is matched to a send yet or not. Absent parts are empty text (DESIGN §5.15)."""
    return (
        Column("id", BigInteger, Identity(always=True), primary_key=True),
        Column("workspace_id", Uuid, nullable=False),
        Column("account_id", Uuid, nullable=False),
        Column("event_id", Exact, nullable=False),
        Column("event_day", Exact, nullable=False, server_default=EMPTY),  # only where ids repeat from day to day
        Column("recipient", LargeBinary, nullable=False, server_default=text("'\\x'")),  # keyed hash
        Column("fact", LargeBinary, nullable=False),  # SHA-256 over what the event says, for repeats with another id
        Column("provider_message_id", Exact),
        Column("attempt", SmallInteger),
        Column("event_type", event_type, nullable=False),
        Column("occurred_at", Time, nullable=False),
        Column("received_at", Time, nullable=False, server_default=text("clock_timestamp()")),
        Column("bounce_class", Exact),
        Column("reason", Text),
        Column("machine", Boolean),
        Column("url", Text),
        Column("repeats", Integer, nullable=False, server_default=text("0")),
        Column("other_ids", Integer, nullable=False, server_default=text("0")),
        Column("raw", LargeBinary),  # encrypted; null once scrubbed
    )


events = Table(
    "events",
    metadata,
    *_event_columns(),
    Column("send_id", Uuid, nullable=False),
    Column("matched_by", Exact, nullable=False),  # our id, or the provider's message id
    UniqueConstraint("account_id", "event_id", "recipient", "event_day", name="one_event_per_id"),
    UniqueConstraint("fact", name="one_event_per_fact"),
    Index("events_by_send", "send_id", "occurred_at"),
    Index("events_by_id", "event_id"),
    # For roll-ups: an event counts in the minute in which it happened; one from the future in that in which it came.
    Index("events_occurred", "occurred_at", postgresql_using="brin", postgresql_with=BLOCK_RANGES),
    Index("events_received", "received_at", postgresql_using="brin", postgresql_with=BLOCK_RANGES),
)

unmatched = Table(
    "unmatched",
    metadata,
    *_event_columns(),
    Column("send_id", Uuid),  # as the provider echoed it, where that is one of ours to be
    UniqueConstraint("account_id", "event_id", "recipient", "event_day", name="one_unmatched_per_id"),
    UniqueConstraint("fact", name="one_unmatched_per_fact"),
    Index("unmatched_by_send", "send_id"),
    Index("unmatched_by_message_id", "provider_message_id"),
    Index("unmatched_by_event_id", "event_id"),
    Index("unmatched_by_recipient", "workspace_id", "recipient", "occurred_at"),
)

mail_replies = Table(
    # Mail that came in, and which send it answers. What answers none says why, and goes after a week.
    "mail_replies",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("workspace_id", Uuid, nullable=False),
    Column("account_id", Uuid, nullable=False),  # that of the provider it came in by, perhaps not the one that sent
    Column("digest", LargeBinary, nullable=False),  # of what makes it this mail, however often it is told
    Column("send_id", Uuid),
    Column("matched_by", Exact),  # address (made for this send), or message_id (named in its headers)
    Column("reason", Text),  # why it answers no send
    Column("at", Time, nullable=False),
    Column("received_at", Time, nullable=False),
    Column("automatic", Boolean, nullable=False),
    Column("own_address", Boolean),  # whether it names the address that the send went to as its sender
    Column("sender", Text),  # masked
    Column("content", LargeBinary),  # encrypted, where the workspace keeps what replies say
    Column("repeats", Integer, nullable=False, server_default=text("0")),
    UniqueConstraint("workspace_id", "digest", name="one_reply_per_mail"),
    Index("mail_replies_by_send", "send_id", "at", postgresql_where=text("send_id is not null")),
    Index("mail_replies_set_aside", "account_id", "received_at", postgresql_where=text("send_id is null")),
    CheckConstraint("(send_id is null) = (matched_by is null)", name="match_has_way"),
    CheckConstraint("(send_id is null) = (reason is not null)", name="set_aside_with_reason"),
    CheckConstraint("send_id is not null or (sender is null and content is null)", name="set_aside_is_bare"),
)

signed_tokens = Table(
    # One provider signs a random token in place of the event: each counts for the body that it came with first.
    "signed_tokens",
    metadata,
    Column("account_id", Uuid, primary_key=True),
    Column("token", LargeBinary, primary_key=True),  # SHA-256, as the body
    Column("body", LargeBinary, nullable=False),
    Column("good_until", Time, nullable=False),
    Index(None, "good_until"),
)

suppressions = Table(
    # One row per reach: the newest statement wins by its own time (provider's or person's), whatever arrives first.
    "suppressions",
    metadata,
    Column("workspace_id", Uuid, nullable=False),
    Column("address_lookup", LargeBinary, nullable=False),
    Column("scope", suppression_scope, nullable=False),
    Column("mailstream", Exact, nullable=False, server_default=EMPTY),
    Column("suppressed", Boolean, nullable=False),
    Column("said_at", Time, nullable=False),
    Column("stored_at", Time, nullable=False, server_default=text("clock_timestamp()")),  # since when we know it
    Column("source", Exact, nullable=False),  # bounced, complained, unsubscribed, resubscribed, person
    Column("account_id", Uuid),
    Column("event_id", Exact),
    Column("send_id", Uuid),
    Column("user_id", Uuid),
    Column("reason", Text),
    PrimaryKeyConstraint("workspace_id", "address_lookup", "scope", "mailstream"),
    CheckConstraint("(scope = 'stream') = (mailstream <> '')", name="stream_is_named"),
)


# ── deciding ─────────────────────────────────────────────────────────────────────────────────────────────────────────

holds = Table(
    "holds",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("send_id", Uuid, nullable=False),
    Column("workspace_id", Uuid, nullable=False),
    Column("mailstream", Exact, nullable=False),
    Column("account_id", Uuid),
    Column("reason", Exact, nullable=False),
    Column("waives", ARRAY(Text), nullable=False),  # the rules that a decision to resend waives: ambiguous, late
    Column("opened_at", Time, nullable=False, server_default=NOW),
    Column("closed_at", Time),
    Column("closed_by", made_by),
    Index("holds_by_send", "send_id"),
    Index("one_open_hold_per_send", "send_id", unique=True, postgresql_where=text("closed_at is null")),
    Index("open_holds", "workspace_id", "opened_at", postgresql_where=text("closed_at is null")),
    CheckConstraint("(closed_at is null) = (closed_by is null)", name="closed_has_maker"),
)

decisions = Table(
    "decisions",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("hold_id", BigInteger, ForeignKey("holds.id"), nullable=False),
    Column("send_id", Uuid, nullable=False),
    Column("workspace_id", Uuid, nullable=False),
    Column("user_id", Uuid, ForeignKey("users.id"), nullable=False),
    Column("decision", decision, nullable=False),
    Column("reason", Text, nullable=False),
    Column("evidence", Integer, nullable=False),  # the number that its maker saw
    Column("seen", JSONB, nullable=False),  # what the page showed: attempts, events, key window
    Column("before_state", any_state, nullable=False),
    Column("after_state", any_state, nullable=False),
    Column("at", Time, nullable=False, server_default=NOW),
    Column("approved_by", Uuid, ForeignKey("users.id")),  # the second person, where one had to agree
    Column("proposal_id", Uuid),  # decided with others
    Index(None, "send_id"),
    CheckConstraint("length(trim(reason)) > 0", name="reason_given"),
    CheckConstraint("approved_by <> user_id", name="approved_by_another"),
)

proposals = Table(
    # One decision about many held sends, from the preview to what came of it.
    "proposals",
    metadata,
    Column("id", Uuid, primary_key=True, server_default=text("gen_random_uuid()")),
    Column("workspace_id", Uuid, nullable=False),
    Column("user_id", Uuid, ForeignKey("users.id"), nullable=False),
    Column("decision", decision, nullable=False),
    Column("filters", JSONB),  # all that fit these; null: they were picked one by one
    Column("sends", Integer, nullable=False),
    Column("left_out", Integer, nullable=False),  # chosen, but the decision is none that they allow
    Column("mailstreams", JSONB, nullable=False),  # name: how many
    Column("stage", stage, nullable=False, server_default=text("'preview'")),
    Column("second_person", Text),  # why one has to agree; null: nobody has to
    Column("reason", Text),
    Column("created_at", Time, nullable=False, server_default=NOW),
    Column("proposed_at", Time),
    Column("expires_at", Time, nullable=False),
    Column("answered_by", Uuid, ForeignKey("users.id")),  # who agreed or declined
    Column("answered_at", Time),
    Column("answer", Text),  # why it was declined or withdrawn
    Column("ended_at", Time),
    Index("proposals_by_time", "workspace_id", "created_at"),
    Index("proposals_under_way", "expires_at", postgresql_where=text("ended_at is null")),
    CheckConstraint("answered_by <> user_id", name="answered_by_another"),
    CheckConstraint("stage = 'preview' or length(trim(reason)) > 0", name="reason_given"),
    CheckConstraint("(stage in ('preview', 'waiting', 'running')) = (ended_at is null)", name="end_has_time"),
    CheckConstraint(
        "second_person is null or stage not in ('running', 'done') or answered_by is not null",
        name="second_person_agreed",
    ),
)

proposal_sends = Table(
    "proposal_sends",
    metadata,
    Column("proposal_id", Uuid, ForeignKey("proposals.id", ondelete="CASCADE"), nullable=False),
    Column("send_id", Uuid, nullable=False),
    Column("hold_id", BigInteger, nullable=False),
    Column("evidence", Integer, nullable=False),  # the number that the maker saw
    Column("decided_at", Time),
    Column("refused", Text),  # why it was not carried out; null with a time: it was
    PrimaryKeyConstraint("proposal_id", "send_id"),
    Index("proposal_sends_left", "proposal_id", "send_id", postgresql_where=text("decided_at is null")),
    Index("proposal_sends_refused", "proposal_id", "send_id", postgresql_where=text("refused is not null")),
)

audit = Table(
    "audit",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("workspace_id", Uuid),
    Column("at", Time, nullable=False, server_default=text("clock_timestamp()")),
    Column("user_id", Uuid),
    Column("token_id", Uuid),
    Column("action", Exact, nullable=False),
    Column("subject", Exact, nullable=False, server_default=EMPTY),
    Column("reason", Text),
    Column("detail", JSONB),
    Index("audit_by_time", "workspace_id", "at"),
    Index("audit_by_subject", "subject"),
)

notes = Table(
    # What agents keep with a send: the number of a ticket, a note, or both. Goes when the send is stripped.
    "notes",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("workspace_id", Uuid, nullable=False),
    Column("send_id", Uuid, nullable=False),
    Column("user_id", Uuid, ForeignKey("users.id"), nullable=False),
    Column("at", Time, nullable=False, server_default=NOW),
    Column("ticket", Exact),
    Column("ticket_lookup", Exact),  # the number as it is compared: without case
    Column("note", LargeBinary),  # encrypted: an agent may write of a person
    Index("notes_by_send", "send_id", "at"),
    Index("notes_by_ticket", "workspace_id", "ticket_lookup", "at"),
    CheckConstraint("ticket is not null or note is not null", name="says_something"),
    CheckConstraint("(ticket is null) = (ticket_lookup is null)", name="ticket_is_found"),
)

views = Table(
    # Filters of a list under a name that the team shares. Never an address: filters are closed sets of words.
    "views",
    metadata,
    Column("id", Uuid, primary_key=True, server_default=text("gen_random_uuid()")),
    Column("workspace_id", Uuid, nullable=False),
    Column("list", Exact, nullable=False),
    Column("name", Text, nullable=False),
    Column("filters", JSONB, nullable=False),
    Column("user_id", Uuid, ForeignKey("users.id"), nullable=False),
    Column("at", Time, nullable=False, server_default=NOW),
    UniqueConstraint("workspace_id", "list", "name", name="one_view_per_name"),
    CheckConstraint("length(name) between 1 and 60", name="has_a_name"),
)

lookups = Table(
    # What somebody searched for, encrypted, behind an opaque link: an address never stands in a URL or a log.
    "lookups",
    metadata,
    Column("id", Exact, primary_key=True),
    Column("workspace_id", Uuid, nullable=False),
    Column("user_id", Uuid, nullable=False),
    Column("query", LargeBinary, nullable=False),
    Column("at", Time, nullable=False, server_default=NOW),
    Index(None, "user_id", "at"),
)

investigations = Table(
    # What somebody asked about a complaint, encrypted, behind an opaque link. It is judged anew whenever it is opened.
    "investigations",
    metadata,
    Column("id", Exact, primary_key=True),
    Column("workspace_id", Uuid, nullable=False),
    Column("user_id", Uuid, nullable=False),
    Column("question", LargeBinary, nullable=False),
    Column("at", Time, nullable=False, server_default=NOW),
    Index(None, "user_id", "at"),
)

replies = Table(
    # How a workspace words the reply to a complaint, by its cause. Without a row the wording of ``insight/replies.py``.
    "replies",
    metadata,
    Column("workspace_id", Uuid, ForeignKey("workspaces.id"), nullable=False),
    Column("cause", Exact, nullable=False),
    Column("language", Exact, nullable=False),
    Column("text", Text, nullable=False),
    Column("user_id", Uuid, ForeignKey("users.id"), nullable=False),
    Column("changed_at", Time, nullable=False, server_default=NOW),
    PrimaryKeyConstraint("workspace_id", "cause", "language"),
    CheckConstraint("length(trim(text)) > 0", name="text_given"),
)


markers = Table(
    # What happened at a moment, drawn into the charts: a deploy, an incident.
    "markers",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("workspace_id", Uuid, nullable=False),
    Column("at", Time, nullable=False),
    Column("kind", Exact, nullable=False),
    Column("title", Text, nullable=False),
    Column("user_id", Uuid),
    Column("token_id", Uuid),
    Column("created_at", Time, nullable=False, server_default=NOW),
    Index("markers_by_time", "workspace_id", "at"),
    CheckConstraint("kind in ('deploy', 'incident')", name="kind_is_known"),
    CheckConstraint("length(trim(title)) > 0", name="title_given"),
)

# ── running ──────────────────────────────────────────────────────────────────────────────────────────────────────────

workers = Table(
    "workers",
    metadata,
    Column("id", Uuid, primary_key=True),  # random: never reused, not even by a restored database
    Column("name", Exact, nullable=False),  # host, pid and the start of the id, for people
    Column("version", Exact, nullable=False),
    Column("loops", ARRAY(Text), nullable=False),
    Column("started_at", Time, nullable=False, server_default=NOW),
    Column("heartbeat_at", Time, nullable=False, server_default=NOW),
    Column("stopped_at", Time),
    Column("in_flight", Integer, nullable=False, server_default=text("0")),
    Column("refused_moves", BigInteger, nullable=False, server_default=text("0")),  # late moves that the fence refused
    # Of each loop: for how many seconds, at the last beat, it had not gone round without an error.
    Column("loop_ages", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("drain_asked_at", Time),  # somebody asked it to finish what is in flight and end
    Index("workers_by_heartbeat", "heartbeat_at"),
)

NO_ACCOUNT = UUID(int=0)
"""Stands in roll-ups for *no account*: what is asked for is counted before anybody knows by which it will leave."""

_NOBODY = text(f"'{NO_ACCOUNT}'")


def _of_a_bucket(*more: Column[Any]) -> tuple[Column[Any] | PrimaryKeyConstraint, ...]:
    """What a figure is of: a mailstream, an account and a source, in the minute or hour that begins at ``minute``."""
    key = (
        Column("workspace_id", Uuid, nullable=False),
        Column("mailstream", Exact, nullable=False),
        Column("minute", Time, nullable=False),
        Column("account_id", Uuid, nullable=False, server_default=_NOBODY),
        Column("source", Exact, nullable=False, server_default=EMPTY),
        *more,
    )
    first = ("workspace_id", "minute", "mailstream")
    names = [column.name for column in key if column.name not in first]
    return (*key, PrimaryKeyConstraint(*first, *names))


def _figures() -> tuple[Column[Any], ...]:
    return (
        *(
            Column(name, BigInteger, nullable=False, server_default=text("0"))
            for name in (
                # What was asked for, of no account.
                "recorded",
                "duplicate",
                "in_progress",
                "mismatch",
                "due",
                "due_accepted",
                "due_stopped",  # suppressed or cancelled
                # What was done about it, of the account of the attempt.
                "claims",
                "attempts",
                "attempts_accepted",
                "attempts_rejected",
                "attempts_ambiguous",
                "attempts_abandoned",
                "doubted",
                "held",
                "delivered",
                "bounced",
                "complained",
                "event_repeats",
                "stale_claims",
            )
        ),
        Column("outbox_age_seconds", Double),  # the greatest measured in this time; null: nobody measured
        Column("unknown", BigInteger),  # the most sends unknown at once, likewise
    )


rollups = Table(
    # Recomputed whole whenever something in that minute changed. What is measured of a whole workspace stands in a row
    # whose mailstream is empty.
    "rollups",
    metadata,
    *_of_a_bucket(),
    *_figures(),
)

rollup_hours = Table(
    # The sums of the minutes of each hour, for long ranges.
    "rollup_hours",
    metadata,
    *_of_a_bucket(),
    *_figures(),
)

latencies = Table(
    # How many took how long: ``measure`` is one of ``latency.Measure``, ``step`` counts ``latency.BOUNDS``.
    "latencies",
    metadata,
    *_of_a_bucket(Column("measure", Exact, nullable=False), Column("step", SmallInteger, nullable=False)),
    Column("number", BigInteger, nullable=False),
)

latency_hours = Table(
    "latency_hours",
    metadata,
    *_of_a_bucket(Column("measure", Exact, nullable=False), Column("step", SmallInteger, nullable=False)),
    Column("number", BigInteger, nullable=False),
)

carriers = Table(
    # Who carries the deliveries of a minute, so that a rise of later ones can be laid at somebody's door.
    "carriers",
    metadata,
    Column("workspace_id", Uuid, nullable=False),
    Column("mailstream", Exact, nullable=False),
    Column("minute", Time, nullable=False),
    Column("source", Exact, nullable=False),
    Column("trigger_type", Exact, nullable=False),
    Column("endpoint", Exact, nullable=False),  # where the trigger came in, as the request tells it; empty: not told
    Column("version", Exact, nullable=False),  # of the worker that recorded a later delivery; empty: no worker did
    Column("recorded", BigInteger, nullable=False),
    Column("duplicate", BigInteger, nullable=False),
    Column("in_progress", BigInteger, nullable=False),
    Column("mismatch", BigInteger, nullable=False),
    PrimaryKeyConstraint("workspace_id", "minute", "mailstream", "source", "trigger_type", "endpoint", "version"),
)

dirty = Table(
    # Minutes whose roll-up must be made again: appended in the transaction of the change, no two share a row.
    "dirty",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("workspace_id", Uuid, nullable=False),
    Column("mailstream", Exact, nullable=False),
    Column("minute", Time, nullable=False),
)


# ── telling people ───────────────────────────────────────────────────────────────────────────────────────────────────

alert_rules = Table(
    # What to watch, and where it stands. The row's lock decides which worker looks at it.
    "alert_rules",
    metadata,
    Column("workspace_id", Uuid, ForeignKey("workspaces.id"), nullable=False),
    Column("name", Exact, nullable=False),
    Column("measure", Exact, nullable=False),
    Column("mailstream", Exact, nullable=False, server_default=EMPTY),  # empty: the whole workspace
    Column("threshold", Double, nullable=False),  # it fires above this
    Column("clears_at", Double, nullable=False),  # and is quiet again at or below this
    Column("hold_for", Interval, nullable=False),  # how long it must stay so, either way
    Column("span", Interval, nullable=False),  # what a rate is counted over
    Column("least", Integer, nullable=False, server_default=text("0")),  # a rate of fewer counts as 0
    Column("severity", severity, nullable=False),
    Column("enabled", Boolean, nullable=False, server_default=text("true")),
    Column("state", alert_state, nullable=False, server_default=text("'quiet'")),
    Column("since", Time, nullable=False, server_default=NOW),
    Column("value", Double),  # when it was last looked at
    Column("looked_at", Time),
    PrimaryKeyConstraint("workspace_id", "name"),
    Index("alert_rules_by_look", "looked_at"),
    CheckConstraint("clears_at <= threshold", name="clears_below"),
    CheckConstraint("hold_for >= interval '0' and span > interval '0' and least >= 0", name="lengths_make_sense"),
)

alerts = Table(
    # One row for each time that a rule fired: what was so, from when to when.
    "alerts",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("workspace_id", Uuid, nullable=False),
    Column("rule", Exact, nullable=False),
    Column("measure", Exact, nullable=False),
    Column("mailstream", Exact, nullable=False, server_default=EMPTY),
    Column("severity", severity, nullable=False),
    Column("threshold", Double, nullable=False),
    Column("opened_at", Time, nullable=False, server_default=NOW),
    Column("value", Double, nullable=False),  # when it fired
    Column("worst", Double, nullable=False),
    Column("closed_at", Time),
    Column("told_at", Time),  # when its notices were made; null while it is silenced
    Column("cleared_told_at", Time),
    Index("one_open_alert_per_rule", "workspace_id", "rule", unique=True, postgresql_where=text("closed_at is null")),
    Index("alerts_by_time", "workspace_id", "opened_at"),
    Index("alerts_to_tell", "id", postgresql_where=text("told_at is null and closed_at is null")),
    Index(
        "alerts_to_clear",
        "id",
        postgresql_where=text("told_at is not null and closed_at is not null and cleared_told_at is null"),
    ),
)

alert_channels = Table(
    "alert_channels",
    metadata,
    Column("id", Uuid, primary_key=True, server_default=text("gen_random_uuid()")),
    Column("workspace_id", Uuid, ForeignKey("workspaces.id"), nullable=False),
    Column("name", Exact, nullable=False),
    Column("kind", channel_kind, nullable=False),
    Column("shown", Text, nullable=False),  # where it goes, without what is secret or personal
    Column("target", LargeBinary, nullable=False),  # encrypted: the URL and its secret, or the addresses
    Column("least_severity", severity, nullable=False, server_default=text("'warning'")),
    Column("created_at", Time, nullable=False, server_default=NOW),
    UniqueConstraint("workspace_id", "name"),
)

alert_notices = Table(
    # One row for each thing to tell on a channel, whatever came of it.
    "alert_notices",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("workspace_id", Uuid, nullable=False),
    Column("alert_id", BigInteger, ForeignKey("alerts.id")),  # null for a test
    Column("channel_id", Uuid, ForeignKey("alert_channels.id", ondelete="CASCADE"), nullable=False),
    Column("kind", notice_kind, nullable=False),
    Column("made_at", Time, nullable=False, server_default=NOW),
    Column("next_try_at", Time, server_default=NOW),  # null: nothing is to be done any more
    Column("tries", Integer, nullable=False, server_default=text("0")),
    Column("delivered_at", Time),
    Column("gave_up_at", Time),
    Column("last_error", Text),  # in our words: never what the other side answered
    UniqueConstraint("alert_id", "channel_id", "kind", name="told_once"),
    Index("alert_notices_due", "next_try_at", postgresql_where=text("next_try_at is not null")),
    Index("alert_notices_by_channel", "channel_id", "id"),
    CheckConstraint("(kind = 'test') = (alert_id is null)", name="a_test_has_no_alert"),
)

alert_silences = Table(
    # While one fits, its alerts are kept and shown, but nobody is told.
    "alert_silences",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("workspace_id", Uuid, nullable=False),
    Column("rule", Exact, nullable=False, server_default=EMPTY),  # empty: every rule
    Column("mailstream", Exact, nullable=False, server_default=EMPTY),  # empty: every mailstream
    Column("made_at", Time, nullable=False, server_default=NOW),
    Column("until", Time, nullable=False),
    Column("reason", Text, nullable=False),
    Column("user_id", Uuid),
    Column("token_id", Uuid),
    Index("alert_silences_by_end", "workspace_id", "until"),
    CheckConstraint("length(trim(reason)) > 0", name="reason_given"),
)

STORAGE = {
    "sends": "fillfactor = 50",
    "work": "fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0",
    "attempts": "fillfactor = 70",
    "outbox": "autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0",
    "dirty": "autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0",
}
"""Room for heap-only updates, and a vacuum that keeps up where rows come and go."""

_DDL: Any = DDL  # it has no types
for _name, _options in STORAGE.items():
    event.listen(
        metadata.tables[f"{SCHEMA}.{_name}"], "after_create", _DDL(f"alter table {SCHEMA}.{_name} set ({_options})")
    )
