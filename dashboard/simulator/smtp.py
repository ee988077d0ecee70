"""SMTP (RFC 5321 with PIPELINING, SIZE, 8BITMIME, AUTH) whose trouble sits where it hurts: between the final dot and
its reply, where the client cannot know whether the server owns the message.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import re
from collections.abc import Callable

from dashboard.simulator import recipients
from dashboard.simulator.connection import reset
from dashboard.simulator.dialect import Call
from dashboard.simulator.provider import SMTP, Provider
from dashboard.simulator.smtp_message import read_message

MAX_SIZE = 40 * 1024 * 1024
MAX_LINE = 1024 * 1024
_PATH = re.compile(r"<([^<>\s]*)>(?:\s+(.*))?", re.ASCII)
_FORGETS = "250 2.0.0 Forgotten"


class Hangup(Exception):
    """The conversation is over; the connection is closed politely unless it was reset already."""


class SmtpConversation:
    """One client's connection, from greeting to QUIT."""

    def __init__(self, provider: Provider, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._provider = provider
        self._reader = reader
        self._writer = writer
        self._sender: str | None = None
        self._recipients: list[str] = []
        self._authenticated = provider.config.smtp_password is None

    async def run(self) -> None:
        """Talk until the client leaves or the connection breaks."""
        try:
            self._reply("220 simulator ESMTP")
            while True:
                line = (await self._reader.readuntil(b"\n")).decode("utf-8", "replace").strip()
                await self._command(line)
        except (Hangup, OSError, EOFError, asyncio.LimitOverrunError):
            pass
        finally:
            self._writer.close()

    async def _command(self, line: str) -> None:
        verb, _, rest = line.partition(" ")
        match verb.upper():
            case "EHLO":
                self._forget()
                extensions = ("PIPELINING", f"SIZE {MAX_SIZE}", "8BITMIME", "SMTPUTF8", "ENHANCEDSTATUSCODES")
                self._reply("250-simulator", *(f"250-{each}" for each in extensions), "250 AUTH PLAIN LOGIN")
            case "HELO":
                self._forget()
                self._reply("250 simulator")
            case "AUTH":
                await self._log_in(rest)
            case "MAIL":
                self._mail(rest)
            case "RCPT":
                self._rcpt(rest)
            case "DATA":
                await self._data()
            case "RSET":
                self._forget()
                self._reply(_FORGETS)
            case "NOOP":
                self._reply("250 2.0.0 Nothing done")
            case "VRFY":
                self._reply("252 2.5.0 Cannot say")
            case "QUIT":
                self._reply("221 2.0.0 Bye")
                raise Hangup
            case _:
                self._reply("500 5.5.2 Unknown command")

    async def _log_in(self, rest: str) -> None:
        mechanism, _, initial = rest.partition(" ")
        if mechanism.upper() == "PLAIN":
            password = _decoded(initial or await self._ask("334 ")).rpartition("\0")[2]
        elif mechanism.upper() == "LOGIN":
            if not initial:
                await self._ask("334 VXNlcm5hbWU6")
            password = _decoded(await self._ask("334 UGFzc3dvcmQ6"))
        else:
            self._reply("504 5.5.4 Only PLAIN and LOGIN")
            return
        self._authenticated = self._provider.config.smtp_password in (None, password)
        self._reply("235 2.7.0 Logged in" if self._authenticated else "535 5.7.8 Wrong user or password")

    async def _ask(self, challenge: str) -> str:
        self._reply(challenge)
        return (await self._reader.readuntil(b"\n")).decode("ascii", "replace").strip()

    def _mail(self, rest: str) -> None:
        path = _path(rest, "FROM:")
        if not self._authenticated:
            self._reply("530 5.7.0 Log in first")
        elif path is None:
            self._reply("501 5.5.4 MAIL FROM:<address>")
        elif self._sender is not None:
            self._reply("503 5.5.1 A transaction is open")
        elif path[1].isdigit() and int(path[1]) > MAX_SIZE:
            self._reply("552 5.3.4 Too big")
        else:
            self._sender = path[0]
            self._reply("250 2.1.0 Sender ok")

    def _rcpt(self, rest: str) -> None:
        path = _path(rest, "TO:")
        if self._sender is None:
            self._reply("503 5.5.1 MAIL first")
        elif path is None or "@" not in path[0]:
            self._reply("501 5.1.3 RCPT TO:<address>")
        else:
            self._reply(self._judge(path[0]))

    def _judge(self, address: str) -> str:
        words = recipients.words_of(address)
        if "reject" in words:
            self._provider.counts["smtp_550"] += 1
            return "550 5.1.1 No such user, as its name asks for"
        if "greylist" in words and self._provider.first_time(f"greylist {address}"):
            self._provider.counts["smtp_451"] += 1
            return "451 4.7.1 Greylisted, come again"
        self._recipients.append(address)
        return "250 2.1.5 Recipient ok"

    async def _data(self) -> None:
        if not self._recipients:
            self._reply("503 5.5.1 No valid recipients" if self._sender is not None else "503 5.5.1 MAIL first")
            return
        self._reply("354 End with a dot on a line by itself")
        content = await self._read_content()
        if content is None:
            self._reply("552 5.3.4 Too big")
        else:
            await self._end_of_data(content)
        self._forget()

    async def _read_content(self) -> bytes | None:
        """The message up to the final dot, dots unstuffed; None if it is too big."""
        lines: list[bytes] = []
        size = 0
        while (line := await self._reader.readuntil(b"\n")) != b".\r\n":
            size += len(line)
            if size <= MAX_SIZE:
                lines.append(line[1:] if line.startswith(b".") else line)
        return b"".join(lines) if size <= MAX_SIZE else None

    async def _end_of_data(self, content: bytes) -> None:
        """The final dot was read: take the message or not, and reply or not."""
        call, draft, identity = read_message(content, sender=self._sender or "", to=self._recipients)
        match self._provider.fault(SMTP, identity, recipients.words_of(draft.address)):
            case "drop_after_dot_not_taken":
                self._reset()
            case "timeout_before":
                await self._reader.read()  # until the client gives up, whatever it says
                raise Hangup
            case "reply_451":
                self._finish("451 4.3.0 Try again later")
            case "reply_421":
                self._finish("421 4.3.2 Shutting down")
                raise Hangup
            case fault:
                await self._take(call, fault)

    async def _take(self, call: Call, fault: str | None) -> None:
        (message_id,), _ = self._provider.accept(call, SMTP)
        for held in self._provider.held():
            await asyncio.shield(held)
        match fault:
            case "accept_then_timeout":
                await self._reader.read()  # until the client gives up, whatever it says
                raise Hangup
            case "drop_after_dot_taken":
                self._reset()
            case "garbage":
                self._finish("Your message was processed.")
                raise Hangup
            case "slow":
                await asyncio.sleep(self._provider.config.slow_ms / 1000)
        self._finish(f"250 2.0.0 Ok: queued as {message_id}")

    def _finish(self, reply: str) -> None:
        self._provider.counts[f"smtp_{reply[:3]}" if reply[:3].isdigit() else "smtp_garbage"] += 1
        self._reply(reply)

    def _reply(self, *lines: str) -> None:
        self._writer.write("".join(f"{line}\r\n" for line in lines).encode())

    def _reset(self) -> None:
        reset(self._writer.transport)
        raise Hangup

    def _forget(self) -> None:
        self._sender = None
        self._recipients = []


def serve(provider: Provider, open_conversations: set[asyncio.Task[None]]) -> Callable[..., None]:
    """The callback for `asyncio.start_server`: one task a connection, kept in the given set while it lives."""

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(SmtpConversation(provider, reader, writer).run())
        open_conversations.add(task)
        task.add_done_callback(open_conversations.discard)

    return connected


def _path(rest: str, word: str) -> tuple[str, str] | None:
    """The address and the SIZE parameter of ``FROM:<…> SIZE=…``."""
    if not rest.upper().startswith(word):
        return None
    found = _PATH.fullmatch(rest[len(word) :].strip())
    if found is None:
        return None
    parameters = (found[2] or "").upper().split()
    return found[1], next((each.removeprefix("SIZE=") for each in parameters if each.startswith("SIZE=")), "")


def _decoded(text: str) -> str:
    with contextlib.suppress(ValueError):
        return base64.b64decode(text).decode("utf-8", "replace")
    return ""
