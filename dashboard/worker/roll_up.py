"""Roll up: bring the figures of the charts up to date with the ledger."""

from __future__ import annotations

from dashboard.ledger import rollups
from dashboard.ledger.database import Connection


def roll_up(connection: Connection, limit: int = 5000) -> int:
    """Make the roll-ups of up to ``limit`` marks again and measure the workspaces, in the connection's transaction.

    Returns how many marks were taken; 0 means that there was nothing to do, or that another worker is at it.
    """
    taken = rollups.roll_up(connection, limit=limit)
    rollups.measure(connection)
    return taken
