"""Runs the migrations: in one transaction, one migrator at a time, with the ledger's own version table."""

from __future__ import annotations

import psycopg
from alembic import context
from sqlalchemy import create_engine, pool, text

from dashboard.ledger.tables import SCHEMA, metadata

LOCK = 7_311_050_101
"""Advisory lock that makes two migrations at once wait for each other."""


def main() -> None:
    """Run the asked-for migrations on ``config.attributes["url"]``."""
    url = context.config.attributes["url"]
    # Nothing here outlives the transaction: behind PgBouncer the next one may have another session of the server.
    engine = create_engine(
        "postgresql+psycopg://",
        creator=lambda: psycopg.connect(url, prepare_threshold=None),
        poolclass=pool.NullPool,
    )
    with engine.connect() as connection:
        connection.execute(text("select pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
        connection.execute(text(f"create schema if not exists {SCHEMA}"))
        context.configure(connection=connection, target_metadata=metadata, version_table_schema=SCHEMA)
        with context.begin_transaction():
            context.run_migrations()
        connection.commit()
    engine.dispose()


main()
