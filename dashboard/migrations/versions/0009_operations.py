"""Deciding many held sends at once, with a second person; draining a worker; tokens that act for a person."""

from pathlib import Path

from alembic import op

revision = "0009"
down_revision = "0008"

HERE = Path(__file__)

BACK = (
    "drop table sendonce.proposal_sends, sendonce.proposals",
    "drop type sendonce.stage",
    "drop index sendonce.attempts_doubted_by_account",
    "alter table sendonce.workers drop column drain_asked_at",
    "alter table sendonce.decisions drop column approved_by, drop column proposal_id",
    "alter table sendonce.api_tokens drop column user_id",
    "alter table sendonce.mailstreams drop column second_person",
    "alter table sendonce.workspaces drop column second_person_above",
)


def upgrade() -> None:
    """Add what is new; held sends are looked at once, since their mailstreams may want them no more."""
    op.get_bind().exec_driver_sql(HERE.with_suffix(".sql").read_text())


def downgrade() -> None:
    """Take it away; who agreed to decisions is then in the audit log alone."""
    for statement in BACK:
        op.execute(statement)
