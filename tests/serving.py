"""The web on a real socket."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from flask import Flask
from werkzeug.serving import make_server


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
