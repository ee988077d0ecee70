"""How long a mailstream keeps what its sends hold, and which sends are tombstones (DESIGN §5.20)."""

from alembic import op

revision = "0003"
down_revision = "0002"

STATEMENTS = (
    "alter table sendonce.mailstreams add column retain_for interval",
    "alter table sendonce.mailstreams add constraint mailstreams_retention_positive check (retain_for > interval '0')",
    "alter table sendonce.sends add column stripped_at timestamptz",
    "alter table sendonce.sends drop constraint sends_key_is_printable",
    "alter table sendonce.sends add constraint sends_key_is_printable check (stripped_at is not null"
    " or length(key) between 1 and 255 and key ~ '^[!-~]([ -~]*[!-~])?$')",
    "alter table sendonce.sends add constraint sends_stripped_is_settled"
    " check (stripped_at is null or state <> 'open')",
    "drop index sendonce.sends_by_stream",
    "create index sends_by_stream on sendonce.sends (workspace_id, mailstream, recorded_at) where stripped_at is null",
)


def upgrade() -> None:
    """Add both; the list of a mailstream's sends leaves out its tombstones."""
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    """What was stripped cannot be brought back, so that the older version could not read it."""
    raise RuntimeError("a ledger with tombstones cannot go back: restore a backup if that is what you want")
