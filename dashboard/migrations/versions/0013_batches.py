"""Whether a mailstream may share its calls, and how to find what went in one call."""

from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """No mailstream does so until somebody says so."""
    op.execute("alter table sendonce.mailstreams add column batches boolean not null default false")
    op.execute(
        "alter table sendonce.mailstreams add constraint mailstreams_only_bulk_batches"
        " check (not batches or mail_class in ('lifecycle', 'scheduled', 'campaign'))"
    )
    op.execute("create index attempts_by_batch on sendonce.attempts (batch) where batch is not null")


def downgrade() -> None:
    """Each send goes alone again."""
    op.execute("drop index sendonce.attempts_by_batch")
    op.execute("alter table sendonce.mailstreams drop column batches")
