"""A lean HTTP client for webhook calls: one kept-alive connection; the status is all that counts."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit


class Poster:
    """One connection to the receiver, opened when needed and kept between calls."""

    def __init__(self) -> None:
        self._origin: tuple[str, str] | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def call(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> int:
        """Make one call and return the status. Raises OSError or EOFError when there is no answer to read.

        A receiver may close an idle connection just as it is used again, so a reused one is tried once more anew.
        """
        parts = urlsplit(url)
        reused = self._writer is not None and self._origin == (parts.scheme, parts.netloc)
        try:
            return await self._call(method, parts, headers, body)
        except (OSError, EOFError):
            if not reused:
                raise
            return await self._call(method, parts, headers, body)

    def close(self) -> None:
        """Let go of the connection."""
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = self._origin = None

    async def _call(self, method: str, parts: SplitResult, headers: Mapping[str, str], body: bytes) -> int:
        try:
            reader, writer = await self._connect(parts)
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            lines = [f"{method} {target} HTTP/1.1", f"host: {parts.netloc}", f"content-length: {len(body)}"]
            lines += [f"{name}: {value}" for name, value in headers.items()]
            writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
            return await self._read_status(reader, answered=method != "HEAD")
        except BaseException:
            self.close()
            raise

    async def _connect(self, parts: SplitResult) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        origin = (parts.scheme, parts.netloc)
        if self._reader is None or self._writer is None or self._origin != origin or self._reader.at_eof():
            self.close()
            secure = parts.scheme == "https"
            port = parts.port or (443 if secure else 80)
            self._reader, self._writer = await asyncio.open_connection(parts.hostname, port, ssl=secure or None)
            self._origin = origin
        return self._reader, self._writer

    async def _read_status(self, reader: asyncio.StreamReader, *, answered: bool) -> int:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            start, *lines = head.split("\r\n")
            status = int(start.split(" ", 2)[1])
        except (ValueError, IndexError, asyncio.LimitOverrunError):
            raise ConnectionError("the receiver's answer is not HTTP") from None
        told = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = told.get("content-length", "") if answered and status != 204 else "0"
        if length.isdigit() and told.get("connection", "").lower() != "close" and start.startswith("HTTP/1.1"):
            with contextlib.suppress(EOFError):
                await reader.readexactly(int(length))
        else:
            self.close()
        return status
