"""Mail that answers sends: where it may be sent to, what is kept of it, and which send each answers."""

from pathlib import Path

from alembic import op

revision = "0014"
down_revision = "0013"

HERE = Path(__file__)


def upgrade() -> None:
    """Make the table. No mailstream takes replies, and no workspace keeps what they say, until somebody says so."""
    op.get_bind().exec_driver_sql(HERE.with_suffix(".sql").read_text().replace("%", "%%"))


def downgrade() -> None:
    """Forget the replies. Addresses that were given out lead nowhere from then on."""
    op.execute("drop table sendonce.mail_replies")
    op.execute("alter table sendonce.mailstreams drop column reply_domain")
    op.execute("alter table sendonce.workspaces drop column keep_replies")
