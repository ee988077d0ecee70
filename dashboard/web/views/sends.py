"""All sends, narrowed by filters that stand in the URL; page by page, and as CSV."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

from flask import Blueprint, Response, abort, request, url_for
from werkzeug.wrappers import Response as AnyResponse

from dashboard.identity import discreet
from dashboard.ledger import audit
from dashboard.ledger.behind import Behind, Span
from dashboard.ledger.database import Database
from dashboard.ledger.listing import Cursor, Page, SendFilter, list_sends
from dashboard.ledger.metrics import read_account_names, read_streams
from dashboard.ledger.tables import Role
from dashboard.ledger.views import Listed, list_views
from dashboard.lifecycle import State, Verdict
from dashboard.web import args
from dashboard.web.csv import csv_line
from dashboard.web.formats import iso
from dashboard.web.permissions import needs
from dashboard.web.show import show
from dashboard.web.state import database, here, me

blueprint = Blueprint("sends", __name__)

FILTERS = ("mailstream", "state", "verdict", "behind", "since", "until", "account")
EXPORTED_AT_ONCE = 1_000
LONGEST_SPAN = timedelta(days=1)
COLUMNS = (
    "send_id", "mailstream", "key", "recipient_id", "state", "reason", "delivery", "trigger_type", "trigger_id",
    "recorded_at", "later_deliveries",
)  # fmt: skip


@blueprint.get("/sends")
@needs(Role.SUPPORT)
def listing() -> AnyResponse:
    """A page of sends; htmx asks for the rows, and the views that fit them."""
    filters = read_filters()
    with database().transaction(durable=False) as connection:
        page = list_sends(connection, here().workspace_id, filters, after=read_cursor())
        streams = [stream.name for stream in read_streams(connection, here().workspace_id)]
        views = list_views(connection, here().workspace_id, Listed.SENDS)
    chosen: dict[str, Any] = {name: request.args[name] for name in FILTERS if request.args.get(name)}
    older = url_for("sends.listing", after=str(page.next), **chosen) if page.next else None
    return show(
        "sends",
        fragment="sends_rows",
        page=page,
        filters=filters,
        chosen=chosen,
        views=views,
        streams=streams,
        states=list(State),
        verdicts=[Verdict.DUPLICATE, Verdict.IN_PROGRESS, Verdict.MISMATCH],
        more=older,
        first="after" not in request.args,
    )


@blueprint.get("/sends.csv")
@needs(Role.OPERATOR)
def export() -> AnyResponse:
    """The whole of the same list as CSV, page by page so that it never lies in memory; written to the audit log."""
    filters = read_filters()
    with database().transaction() as connection:
        detail = {name: value for name, value in request.args.items() if name in FILTERS}
        audit.record(
            connection, audit.Action.EXPORT_SENDS, workspace_id=here().workspace_id, user_id=me().id, detail=detail
        )
    lines = _lines(database(), here().workspace_id, filters)
    return Response(
        lines,
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="sends.csv"'},
    )


def read_filters() -> SendFilter:
    """The filters of the URL."""
    return SendFilter(
        mailstream=args.text("mailstream"),
        state=args.word("state", State),
        verdict=args.word("verdict", Verdict),
        behind=_behind(),
    )


def _behind() -> Span | None:
    """The point of a chart whose sends are asked for."""
    what, since, until = args.word("behind", Behind), args.moment("since"), args.moment("until")
    if what is None:
        return None
    if since is None or until is None or until <= since:
        abort(400, "A point of a chart has a time since when and one until when, the later one behind.")
    if until - since > LONGEST_SPAN:
        abort(400, "A point of a chart is no longer than a day: choose a shorter time.")
    account = args.text("account")
    return Span(what=what, since=since, until=until, account_id=_account_id(account) if account else None)


def _account_id(name: str) -> UUID:
    with database().transaction(durable=False) as connection:
        known = {account: id for id, account in read_account_names(connection, here().workspace_id).items()}
    return known.get(name) or abort(400, "There is no such account.")


def read_cursor() -> Cursor | None:
    """Where the page before ended."""
    value = args.text("after")
    if value is None:
        return None
    try:
        return Cursor.read(value)
    except ValueError:
        abort(400, "This link to the next page is damaged: start from the first page.")


def _lines(base: Database, workspace_id: UUID, filters: SendFilter) -> Iterator[str]:
    yield csv_line(COLUMNS)
    after: Cursor | None = None
    while True:
        with base.transaction(durable=False) as connection:
            page: Page = list_sends(connection, workspace_id, filters, after=after, limit=EXPORTED_AT_ONCE)
        for row in page.rows:
            yield csv_line(
                (
                    row.send_id, row.mailstream, row.key, discreet(row.recipient_id), row.state, row.reason,
                    row.delivery, row.trigger_type, discreet(row.trigger_id), iso(row.recorded_at), row.duplicates,
                )
            )  # fmt: skip
        after = page.next
        if after is None:
            return
