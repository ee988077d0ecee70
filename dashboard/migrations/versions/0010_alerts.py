"""Alerts: rules, what fired, whom to tell, and when not to; how long each loop of a worker has not gone round."""

from pathlib import Path

from alembic import op

revision = "0010"
down_revision = "0009"

HERE = Path(__file__)
TABLES = ("alert_silences", "alert_notices", "alert_channels", "alerts", "alert_rules")
TYPES = ("channel_kind", "notice_kind", "severity", "alert_state")


def upgrade() -> None:
    """Make the tables, and the rules that every workspace starts with."""
    op.get_bind().exec_driver_sql(HERE.with_suffix(".sql").read_text().replace("%", "%%"))


def downgrade() -> None:
    """Forget all rules, alerts and channels."""
    for table in TABLES:
        op.execute(f"drop table sendonce.{table}")
    for kind in TYPES:
        op.execute(f"drop type sendonce.{kind}")
    op.execute("drop index sendonce.second_message_ids_seen")
    op.execute("alter table sendonce.workers drop column loop_ages")
