"""Searching: a POST that lands on an opaque link, so that what was typed reaches no URL, log or history."""

from __future__ import annotations

from itertools import groupby
from uuid import UUID

from flask import Blueprint, abort, request, url_for
from werkzeug.wrappers import Response

from dashboard.ledger.lookups import read_lookup, save_lookup
from dashboard.ledger.search import HITS, PAGED, START, Before, Hit, Reading, exact_hit, search, search_close
from dashboard.ledger.tables import Role
from dashboard.web import args
from dashboard.web.permissions import needs
from dashboard.web.show import go, show
from dashboard.web.state import database, here, me, vault

blueprint = Blueprint("search", __name__)

AHEAD = 4
"""Hits of each reading while somebody types."""
SHORTEST_AHEAD = 3
"""Characters; less would find anything."""


@blueprint.post("/search")
@needs(Role.SUPPORT)
def find() -> Response:
    """File the search; one exact hit, or the one that was picked, goes straight to its trace."""
    text = args.posted("q", limit=1_000)
    if not text:
        return go(url_for("investigate.home"))
    picked = _picked()
    with database().transaction(durable=False) as connection:
        lookup_id = save_lookup(connection, vault(), workspace_id=here().workspace_id, user_id=me().id, text=text)
        hits = search(connection, vault(), here().workspace_id, text)
    hit = next((one for one in hits if one.send_id == picked), None) or exact_hit(hits)
    if hit is not None:
        return go(url_for("send.trace", send_id=hit.send_id, by=hit.reading.value))
    return go(url_for("search.results", lookup_id=lookup_id))


@blueprint.post("/search/ahead")
@needs(Role.SUPPORT)
def ahead() -> Response:
    """What the text would find, while it is typed. It is not filed."""
    text = args.posted("q", limit=1_000)
    hits: list[Hit] = []
    if len(text) >= SHORTEST_AHEAD:
        with database().transaction(durable=False) as connection:
            hits = search(connection, vault(), here().workspace_id, text, limit=AHEAD)
    return show("search_ahead", fragment="search_ahead", hits=hits[: 2 * AHEAD], more=len(hits) > 2 * AHEAD, text=text)


@blueprint.get("/lookups/<lookup_id>")
@needs(Role.SUPPORT)
def results(lookup_id: str) -> Response:
    """What a search finds now, by the reading that matched; what is close, where nothing is called so.

    With a reading and a place in its list: the older ones of that reading alone.
    """
    only, before = args.word("reading", Reading), _before()
    with database().transaction(durable=False) as connection:
        lookup = read_lookup(connection, vault(), workspace_id=here().workspace_id, lookup_id=lookup_id)
        if lookup is None:
            abort(404)
        text, workspace_id = lookup.text or "", here().workspace_id
        hits = search(connection, vault(), workspace_id, text, before=before)
        close = search_close(connection, vault(), workspace_id, text) if not hits and before == START else []
    readings = [
        (reading, list(found))
        for reading, found in groupby(hits or close, key=lambda hit: hit.reading)
        if only in (None, reading)
    ]
    return show(
        "lookup",
        lookup=lookup,
        readings=readings,
        close=bool(close),
        total=sum(len(found) for _, found in readings),
        capped=any(len(found) >= HITS for _, found in readings),
        limit=HITS,
        older={
            reading: str(Before(found[-1].recorded_at, found[-1].send_id))
            for reading, found in readings
            if reading in PAGED and len(found) >= HITS
        },
        first=before == START,
    )


def _picked() -> UUID | None:
    try:
        return UUID(request.form.get("pick", ""))
    except ValueError:
        return None


def _before() -> Before:
    value = args.text("before")
    if value is None:
        return START
    try:
        before = Before.read(value)
    except ValueError:
        abort(400, "This link to older sends is damaged: start from the first page.")
    if before.at.tzinfo is None:
        abort(400, "This link to older sends is damaged: start from the first page.")
    return before
