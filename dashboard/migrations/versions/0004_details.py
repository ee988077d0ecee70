"""What was wrong with a message that could not be filled in, and how often the same dead letter came."""

from alembic import op

revision = "0004"
down_revision = "0003"

STATEMENTS = (
    "alter table sendonce.moves add column detail text",
    "alter table sendonce.dead_letters add column digest bytea",
    "alter table sendonce.dead_letters add column repeats integer not null default 0",
    "create unique index dead_letters_once on sendonce.dead_letters (account_id, digest)",
)


def upgrade() -> None:
    """Add both. Dead letters of before have no digest, and may come once more."""
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    """Forget them."""
    op.execute("drop index sendonce.dead_letters_once")
    op.execute("alter table sendonce.dead_letters drop column repeats")
    op.execute("alter table sendonce.dead_letters drop column digest")
    op.execute("alter table sendonce.moves drop column detail")
