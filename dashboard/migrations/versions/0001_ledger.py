"""The ledger: its tables, checks, indexes and functions."""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Run the two SQL files beside this one."""
    for name in ("0001_tables.sql", "0001_functions.sql"):
        op.get_bind().exec_driver_sql((Path(__file__).with_name(name)).read_text().replace("%", "%%"))


def downgrade() -> None:
    """There is nothing before the first schema; dropping a ledger is never a migration's business."""
    raise RuntimeError("the first migration cannot be undone: drop the schema by hand if that is what you want")
