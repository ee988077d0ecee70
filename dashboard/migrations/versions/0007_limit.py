"""``enqueue`` refuses what the relay would have to set aside for its size."""

from pathlib import Path

from alembic import op

revision = "0007"
down_revision = "0004"

HERE = Path(__file__)


def upgrade() -> None:
    """Replace the function."""
    op.get_bind().exec_driver_sql(HERE.with_name("0007_limit.sql").read_text().replace("%", "%%"))


def downgrade() -> None:
    """Put the first one back."""
    functions = HERE.with_name("0001_functions.sql").read_text()
    first = functions[functions.index("create function sendonce.enqueue") :]
    op.get_bind().exec_driver_sql(first.replace("create function", "create or replace function").replace("%", "%%"))
