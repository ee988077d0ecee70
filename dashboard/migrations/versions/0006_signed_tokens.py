"""Tokens that a provider signs in place of the event, each with the one body that it may come with."""

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """A table for them; what came before is not remembered."""
    op.execute(
        "create table sendonce.signed_tokens (account_id uuid not null, token bytea not null, body bytea not null,"
        " good_until timestamptz not null, primary key (account_id, token))"
    )
    op.execute("create index signed_tokens_good_until on sendonce.signed_tokens (good_until)")


def downgrade() -> None:
    """Forget them."""
    op.execute("drop table sendonce.signed_tokens")
