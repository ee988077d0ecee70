"""Searching: a POST that lands on an opaque link, so that what was typed reaches no URL, log or history."""

from __future__ import annotations

from itertools import groupby

from flask import Blueprint, abort, url_for
from werkzeug.wrappers import Response

from dashboard.ledger.lookups import read_lookup, save_lookup
from dashboard.ledger.search import HITS, exact_hit, search
from dashboard.ledger.tables import Role
from dashboard.web.args import posted
from dashboard.web.permissions import needs
from dashboard.web.show import go, show
from dashboard.web.state import database, here, me, vault

blueprint = Blueprint("search", __name__)


@blueprint.post("/search")
@needs(Role.SUPPORT)
def find() -> Response:
    """File the search; one exact hit goes straight to its trace."""
    text = posted("q", limit=1_000)
    if not text:
        return go(url_for("investigate.home"))
    with database().transaction(durable=False) as connection:
        lookup_id = save_lookup(connection, vault(), workspace_id=here().workspace_id, user_id=me().id, text=text)
        hit = exact_hit(search(connection, vault(), here().workspace_id, text))
    if hit is not None:
        return go(url_for("send.trace", send_id=hit.send_id, by=hit.reading.value))
    return go(url_for("search.results", lookup_id=lookup_id))


@blueprint.get("/lookups/<lookup_id>")
@needs(Role.SUPPORT)
def results(lookup_id: str) -> Response:
    """What a search finds now, by the reading that matched."""
    with database().transaction(durable=False) as connection:
        lookup = read_lookup(connection, vault(), workspace_id=here().workspace_id, lookup_id=lookup_id)
        if lookup is None:
            abort(404)
        hits = search(connection, vault(), here().workspace_id, lookup.text) if lookup.text else []
    readings = [(reading, list(found)) for reading, found in groupby(hits, key=lambda hit: hit.reading)]
    capped = any(len(found) >= HITS for _, found in readings)
    return show("lookup", lookup=lookup, readings=readings, total=len(hits), capped=capped, limit=HITS)
