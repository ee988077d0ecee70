"""Pausing and resuming a mailstream, an account or all sending from its page."""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

from flask import abort, flash
from werkzeug.wrappers import Response

from dashboard.ledger.database import Connection
from dashboard.web import args
from dashboard.web.show import go
from dashboard.web.state import database, here, me


class Pause(Protocol):
    """Stops it. False where there is none such."""

    def __call__(self, connection: Connection, /, *, workspace_id: UUID, reason: str, user_id: UUID) -> object: ...


class Resume(Protocol):
    """Ends its pause. False where there is none such."""

    def __call__(
        self, connection: Connection, /, *, workspace_id: UUID, user_id: UUID, reason: str | None
    ) -> object: ...


def pause(act: Pause, name: str, *, back: str) -> Response:
    """Stop what has this name for the reason of the form, and go back to its page."""
    reason = args.posted("reason")
    if not reason:
        flash("Give a reason: it stands in every trace that waits for it.")
        return go(back)
    with database().transaction() as connection:
        if not act(connection, workspace_id=here().workspace_id, reason=reason, user_id=me().id):
            abort(404)
    flash(f"{name} is paused. What is under way runs to its end.")
    return go(back)


def resume(act: Resume, name: str, *, back: str) -> Response:
    """Let it go on, with the reason of the form where there is one, and go back to its page."""
    reason = args.posted("reason") or None
    with database().transaction() as connection:
        if not act(connection, workspace_id=here().workspace_id, user_id=me().id, reason=reason):
            abort(404)
    flash(f"{name} is active.")
    return go(back)
