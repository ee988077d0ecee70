"""Files under ``static/`` go compressed to browsers that take them so: the chart library shrinks to a third."""

from __future__ import annotations

import gzip
from functools import lru_cache
from pathlib import Path

from flask import Flask, request
from werkzeug.wrappers import Response

KINDS = ("text/javascript", "application/javascript", "text/css", "image/svg+xml")

WORTH_IT = 1_000
"""Bytes; what is smaller goes as it is."""


def install(app: Flask) -> None:
    """Compress what ``static/`` answers."""
    folder = Path(app.static_folder or "")

    def compress(response: Response) -> Response:
        if request.endpoint != "static" or response.mimetype not in KINDS:
            return response
        response.vary.add("Accept-Encoding")
        # A part of a file is a part of the file as it is.
        takes = request.accept_encodings["gzip"] > 0 and "Range" not in request.headers
        path = folder / (request.view_args or {}).get("filename", "")
        if takes and response.status_code == 200 and path.stat().st_size >= WORTH_IT:
            response.direct_passthrough = False
            response.close()  # the file as it is, which nobody will read
            response.set_data(_packed(path, path.stat().st_mtime_ns))
            response.headers["Content-Encoding"] = "gzip"
            if (tag := response.get_etag()[0]) is not None:
                response.set_etag(f"{tag}-gzip")
        return response

    app.after_request(compress)


@lru_cache(maxsize=64)
def _packed(path: Path, _modified: int) -> bytes:
    return gzip.compress(path.read_bytes(), mtime=0)
