"""What people and programs did: a list with filters that stand in the URL, and as CSV."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, time
from typing import Any
from uuid import UUID

from flask import Blueprint, abort, url_for
from flask import Response as Plain
from werkzeug.wrappers import Response

from dashboard.identity import discreet
from dashboard.ledger import audit
from dashboard.ledger.audit import Action, AuditFilter, list_entries
from dashboard.ledger.database import Database
from dashboard.ledger.tables import Role
from dashboard.ledger.views import Listed, list_views
from dashboard.web import args
from dashboard.web.csv import csv_line
from dashboard.web.formats import iso, viewer_zone
from dashboard.web.permissions import needs
from dashboard.web.show import show
from dashboard.web.state import database, here, me

blueprint = Blueprint("audit", __name__)

ROWS = 50
EXPORTED_AT_ONCE = 1_000
COLUMNS = ("id", "at", "who", "action", "subject", "reason", "detail")


@blueprint.get("/audit")
@needs(Role.ADMIN)
def log() -> Response:
    """A page of the log, newest first."""
    filters, before = read_filters(), args.number("before")
    with database().transaction(durable=False) as connection:
        entries = list_entries(connection, here().workspace_id, filters=filters, before=before, limit=ROWS)
        views = list_views(connection, here().workspace_id, Listed.AUDIT)
    chosen = _chosen()
    older = url_for("audit.log", before=entries[-1].id, **chosen) if len(entries) == ROWS else None
    return show(
        "audit", fragment="audit_rows", entries=entries, chosen=chosen, actions=sorted(Action), more=older,
        action=filters.action, views=views, first=before is None,
    )  # fmt: skip


@blueprint.get("/audit.csv")
@needs(Role.ADMIN)
def export() -> Response:
    """The whole of the same list as CSV, page by page; itself written down."""
    filters = read_filters()
    with database().transaction() as connection:
        audit.record(
            connection, Action.EXPORT_AUDIT, workspace_id=here().workspace_id, user_id=me().id, detail=_chosen()
        )
    return Plain(
        _lines(database(), here().workspace_id, filters),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="audit.csv"'},
    )


def read_filters() -> AuditFilter:
    """The filters of the URL. Days are those of the viewer's zone, the last one included."""
    action = args.word("action", Action)
    since, until = _day("since", time.min), _day("until", time.max)
    return AuditFilter(
        action=action and action.value, who=args.text("who"), subject=args.text("subject"), since=since, until=until
    )


def _chosen() -> dict[str, Any]:
    return {name: value for name in AuditFilter.__slots__ if (value := args.text(name))}


def _day(name: str, of_day: time) -> datetime | None:
    text = args.text(name)
    try:
        day = datetime.strptime(text, "%Y-%m-%d") if text else None  # noqa: DTZ007  # its zone follows
        return datetime.combine(day, of_day, viewer_zone()) if day else None
    except ValueError:
        abort(400, f"{name} is a day such as 2026-11-30.")


def _lines(base: Database, workspace_id: UUID, filters: AuditFilter) -> Iterator[str]:
    yield csv_line(COLUMNS)
    before: int | None = None
    while True:
        with base.transaction(durable=False) as connection:
            entries = list_entries(connection, workspace_id, filters=filters, before=before, limit=EXPORTED_AT_ONCE)
        for entry in entries:
            detail = json.dumps(entry.detail) if entry.detail else ""
            yield csv_line(
                (
                    entry.id,
                    iso(entry.at),
                    entry.who or "",
                    entry.action,
                    entry.subject,
                    discreet(entry.reason or ""),
                    detail,
                )
            )
        if len(entries) < EXPORTED_AT_ONCE:
            return
        before = entries[-1].id
