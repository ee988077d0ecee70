"""The web on a real socket."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from flask import Flask
from werkzeug.serving import make_server

from dashboard.ledger.database import Database
from dashboard.ledger.vault import Vault
from dashboard.settings import Settings
from dashboard.web import create_app
from dashboard.web.state import NAME, Ground

_APPS: dict[Settings, Flask] = {}


def the_app(settings: Settings, database: Database, vault: Vault) -> Flask:
    """The web application on these parts, for the fixtures that hundreds of tests begin with.

    To make one takes a tenth of a second. So all tests with the same settings, whatever their database, have the same
    one, standing on the parts that were given last; a test that needs two at once makes the other by ``create_app``.
    """
    alike = replace(settings, database_url="")
    if alike not in _APPS:
        _APPS[alike] = create_app(settings, database, vault)
    app = _APPS[alike]
    app.extensions[NAME] = Ground(settings, database, vault)
    return app


@contextmanager
def served(app: Flask) -> Iterator[str]:
    """The URL of an application that answers on this machine until the block ends."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    serving = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}
    )  # soon after the end, it ends
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
