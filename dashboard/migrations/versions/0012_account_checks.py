"""What the daily check of each account found, and the alert rule that watches it."""

from pathlib import Path

from alembic import op

revision = "0012"
down_revision = "0011"

HERE = Path(__file__)


def upgrade() -> None:
    """Make the table, and the rule for the workspaces that are there."""
    op.get_bind().exec_driver_sql(HERE.with_suffix(".sql").read_text().replace("%", "%%"))


def downgrade() -> None:
    """Forget the checks, and what watches them."""
    op.execute("delete from sendonce.alert_rules where measure = 'accounts_broken'")
    op.execute("drop table sendonce.account_checks")
