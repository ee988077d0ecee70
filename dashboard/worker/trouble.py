"""Trouble in a loop: said, waited out, and tried again. A loop never ends because of an error."""

from __future__ import annotations

import random
import time

import psycopg
import sqlalchemy.exc

from dashboard.ledger.database import NotCommitted
from dashboard.log import Action, log

DATABASE_TROUBLE = (psycopg.Error, sqlalchemy.exc.DBAPIError, sqlalchemy.exc.TimeoutError, NotCommitted)
"""What a statement or a commit may come to, whoever's fault it is."""

LONGEST_PAUSE = 5.0
"""Seconds between two tries."""


def wait_out(loop: str, error: Exception, in_a_row: int) -> None:
    """Say what went wrong and wait: longer each time, with jitter, so that workers do not come back all at once."""
    if isinstance(error, DATABASE_TROUBLE):
        log.warning(Action.LOOP_FAILED, loop=loop, error=named(error), in_a_row=in_a_row)
    else:
        log.error(Action.LOOP_FAILED, loop=loop, error=named(error), in_a_row=in_a_row, exc_info=True)
    time.sleep(min(0.1 * 2.0 ** min(in_a_row, 10), LONGEST_PAUSE) * random.uniform(0.5, 1.0))  # noqa: S311  # jitter


def named(error: Exception) -> str:
    """An error for the log: its class and SQLSTATE. Never its text, which may quote a row."""
    cause = getattr(error, "orig", None) or error
    return f"{type(cause).__name__} {getattr(cause, 'sqlstate', None) or ''}".strip()
