"""Roll-ups by account and source, latencies, who carries later deliveries, hours, and markers."""

from pathlib import Path

from alembic import op

revision = "0011"
down_revision = "0010"

HERE = Path(__file__)


def upgrade() -> None:
    """Make the tables. What was rolled up before is marked, and the next worker counts it anew from the ledger."""
    op.get_bind().exec_driver_sql(HERE.with_suffix(".sql").read_text().replace("%", "%%"))


def downgrade() -> None:
    """Back to roll-ups of mailstreams alone, to be counted anew as well. Markers are forgotten."""
    for statement in (
        "drop table sendonce.markers, sendonce.carriers, sendonce.latencies, sendonce.latency_hours",
        "drop table sendonce.rollup_hours",
        "drop index sendonce.work_unknown",
        "drop index sendonce.events_occurred",
        "alter table sendonce.duplicates drop column endpoint",
        "insert into sendonce.dirty (workspace_id, mailstream, minute)"
        " select distinct workspace_id, mailstream, minute from sendonce.rollups where mailstream <> ''",
        "delete from sendonce.rollups where mailstream <> ''",
        "alter table sendonce.rollups drop constraint rollups_pkey",
        "alter table sendonce.rollups drop column account_id, drop column source, drop column claims,"
        " drop column attempts_abandoned, drop column held",
        "alter table sendonce.rollups add constraint rollups_pkey primary key (workspace_id, minute, mailstream)",
    ):
        op.execute(statement)
