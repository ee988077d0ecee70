"""``enqueue`` refuses what would have to be set aside for its size; a dead letter may be discarded."""

from pathlib import Path

from alembic import op

revision = "0005"
down_revision = "0004"

HERE = Path(__file__)


def upgrade() -> None:
    """Replace the function, and add the column."""
    op.execute("alter table sendonce.dead_letters add column discarded_at timestamptz")
    op.get_bind().exec_driver_sql(HERE.with_name("0005_aside.sql").read_text().replace("%", "%%"))


def downgrade() -> None:
    """Put the first function back; which letters were discarded is forgotten."""
    op.execute("alter table sendonce.dead_letters drop column discarded_at")
    functions = HERE.with_name("0001_functions.sql").read_text()
    first = functions[functions.index("create function sendonce.enqueue") :]
    op.get_bind().exec_driver_sql(first.replace("create function", "create or replace function").replace("%", "%%"))
