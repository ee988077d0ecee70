"""Where an attempt went, and as whom: a repeat under the same key is only safe at the same endpoint (DESIGN §5.3)."""

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Attempts of before keep the empty endpoint, which equals that of their account until the account changes."""
    op.execute("alter table sendonce.accounts add column endpoint bytea not null default ''")
    op.execute("alter table sendonce.attempts add column endpoint bytea not null default ''")


def downgrade() -> None:
    """Forget the endpoints."""
    op.execute("alter table sendonce.attempts drop column endpoint")
    op.execute("alter table sendonce.accounts drop column endpoint")
