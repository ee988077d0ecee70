"""One SMTP connection, command by command, so that it is always known how far it came.

The end of the message is a write of its own: as long as no byte of it was handed over, the server cannot own the
message (RFC 5321 §4.1.1.4); from its first byte to a complete reply, it may (§6.1, RFC 1047).
"""

from __future__ import annotations

import base64
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from urllib3.util.wait import wait_for_read

from dashboard.providers.base import Deadline, boot_time
from dashboard.providers.results import SmtpFailure
from dashboard.providers.wire import SubmitDeadlinePassed, TimedSocket

END = b".\r\n"
PATIENCE = {"banner": 300, "mail_from": 300, "rcpt_to": 300, "data": 120, "data_body": 180, "final_dot": 600}
"""Seconds that RFC 5321 §4.5.3.2 wants a client to wait, at least."""
_OTHER_PATIENCE = 300
_LONGEST_PATIENCE = max(PATIENCE.values())
_LONGEST_LINE = 4096
_MOST_LINES = 128
REPLY_LINE = re.compile(r"([2-5][0-9]{2})(?:([ -])(.*))?", re.DOTALL)


class Ended(Exception):
    """The conversation cannot go on: the last reply says why, or the failure does."""

    def __init__(self, failure: SmtpFailure | None = None) -> None:
        super().__init__(failure)
        self.failure = failure


class _Garbled(Exception):
    """What came is not a reply."""


class Conversation:
    """An open connection. ``said`` collects (phase, reply) until :meth:`forget`."""

    def __init__(self, sock: TimedSocket, *, request_timeout: float) -> None:
        self.sock = sock
        self.extensions: dict[str, str] = {}
        self.said: list[tuple[str, str]] = []
        self.whole = True
        """False once a failure or a closing reply makes it useless."""
        self.limit = float("inf")
        """No wait before the message's body goes on past this instant of the boot clock."""
        self._scale = min(1.0, request_timeout / _LONGEST_PATIENCE)
        self._heard = bytearray()

    def step(self, phase: str, line: str | None, *, want: str = "2") -> str:
        """Say one line (None: only listen) and hear the reply. Raises Ended unless it begins with ``want``."""
        self.sock.until = min(self.limit, boot_time() + PATIENCE.get(phase, _OTHER_PATIENCE) * self._scale)
        with self._failing(phase):
            if line is not None:
                if self._something_came():
                    raise _Garbled("a reply that nobody asked for")
                self.sock.sendall(f"{line}\r\n".encode())
            reply = self._reply()
        return self._judged(phase, reply, want)

    def greet(self, host_name: str) -> None:
        """EHLO, and what the server offers."""
        lines = self.step("ehlo", f"EHLO {host_name}").split("\n")[1:]
        words = [line.partition(" ") for line in lines]
        self.extensions = {keyword.upper(): rest.strip() for keyword, _, rest in words}

    def start_tls(self, context: ssl.SSLContext, host: str, host_name: str) -> None:
        """STARTTLS, and EHLO again (RFC 3207 §4.2). What came unencrypted and unasked ends the conversation."""
        if "STARTTLS" not in self.extensions:
            self.end("starttls", "not_offered")
        self.step("starttls", "STARTTLS")
        if self._heard:
            self.end("starttls", "garbage")
        self.wrap(context, host, phase="starttls")
        self.greet(host_name)

    def wrap(self, context: ssl.SSLContext, host: str, *, phase: str) -> None:
        """The TLS handshake."""
        self.sock.settimeout(max(self.sock.until - boot_time(), 0.001))
        try:
            secured = context.wrap_socket(self.sock, server_hostname=host)
        except (OSError, ValueError):
            self.end(phase, "tls_error")
        assert isinstance(secured, TimedSocket)
        secured.until = self.sock.until
        self.sock = secured

    def log_in(self, username: str, password: str) -> None:
        """AUTH by the first way that both know: PLAIN (RFC 4616), else LOGIN."""
        ways = self.extensions.get("AUTH", "").upper().split()
        if "PLAIN" in ways:
            self.step("auth", f"AUTH PLAIN {_base64(f'{chr(0)}{username}{chr(0)}{password}')}")
        elif "LOGIN" in ways:
            for line in ("AUTH LOGIN", _base64(username)):
                self.step("auth", line, want="3")
                self.said.pop()
            self.step("auth", _base64(password))
        else:
            self.end("auth", "not_offered")

    def deliver(self, message: bytes, *, submit_by: Deadline, seconds: float) -> None:
        """Write the message after a 354, then its end, and hear the verdict. Raises SubmitDeadlinePassed, or Ended."""
        until = boot_time() + seconds
        self.sock.begin(submit_by=submit_by, until=until)
        with self._failing("data_body", final_dot_written=False):
            self.sock.sendall(dot_stuffed(message))
            early = self._reply() if self._something_came() else None
        if early is not None:
            self.whole = False  # it closes, or it speaks out of turn: the end is not written, so nothing is taken
            self._judged("data_body", early, want="nothing")
        self.sock.begin(submit_by=None, until=until)
        try:
            self.sock.sendall(END)
        except Exception as error:
            self.end("final_dot", _failure_name(error), final_dot_written=self.sock.wrote)
        with self._failing("final_dot", final_dot_written=True):
            reply = self._reply()
        self._judged("final_dot", reply, want="2")

    def reset(self) -> bool:
        """RSET, which also proves that a rested connection still stands. Nothing depends on it but the connection."""
        self.limit = boot_time() + 10.0
        try:
            self.step("rset", "RSET")
        except Ended:
            return False
        finally:
            self.forget()
        return True

    def forget(self) -> None:
        """Begin a new transaction's record."""
        self.said = []

    def close(self) -> None:
        """Say QUIT if that is possible without waiting, and let go."""
        if self.whole:
            try:
                self.sock.until = boot_time() + 1.0
                self.sock.sendall(b"QUIT\r\n")
            except OSError:
                pass  # accepted is accepted; nobody needs this answer
        self.sock.close()

    def end(self, phase: str, error: str, *, final_dot_written: bool | None = None) -> None:
        """Raise Ended with this failure."""
        self.whole = False
        raise Ended(SmtpFailure(phase=phase, error=error, final_dot_written=final_dot_written))

    def _judged(self, phase: str, reply: str, want: str) -> str:
        self.said.append((phase, reply))
        self.whole = self.whole and reply[:3] != "421"
        if not reply.startswith(want):
            raise Ended
        return reply

    @contextmanager
    def _failing(self, phase: str, *, final_dot_written: bool | None = None) -> Iterator[None]:
        try:
            yield
        except _Garbled as garbled:
            self.whole = False
            self.said.append((phase, str(garbled)))
            raise Ended from None
        except SubmitDeadlinePassed:
            raise
        except Exception as error:  # also what nobody expected: it may not hide that the message was written
            self.end(phase, _failure_name(error), final_dot_written=final_dot_written)

    def _reply(self) -> str:
        """A complete reply: its code, a space, its lines apart by line feeds."""
        texts: list[str] = []
        for _ in range(_MOST_LINES):
            line = self._line()
            found = REPLY_LINE.fullmatch(line)
            if found is None:
                raise _Garbled(line[:100])
            code, separator, text = found.groups()
            texts.append(text or "")
            if separator != "-":
                return f"{code} " + "\n".join(texts)
        raise _Garbled("a reply without an end")

    def _line(self) -> str:
        while b"\n" not in self._heard:
            if len(self._heard) > _LONGEST_LINE:
                raise _Garbled("a line without an end")
            self._listen()
        line, _, rest = bytes(self._heard).partition(b"\n")
        self._heard = bytearray(rest)
        return line.removesuffix(b"\r").decode(errors="replace")

    def _listen(self) -> None:
        buffer = bytearray(8192)
        count = self.sock.recv_into(buffer)
        if count == 0:
            raise ConnectionResetError("closed by the server")
        self._heard += buffer[:count]

    def _something_came(self) -> bool:
        """True if the server has spoken already. Under TLS a readable socket may hold no words: look, and go on."""
        waiting = isinstance(self.sock, ssl.SSLSocket) and self.sock.pending() > 0
        if self._heard or not (waiting or wait_for_read(self.sock, timeout=0.0)):
            return bool(self._heard)
        until, self.sock.until = self.sock.until, boot_time() + 0.05
        try:
            self._listen()
        except TimeoutError:
            return False
        finally:
            self.sock.until = until
        return True


def dot_stuffed(message: bytes) -> bytes:
    """The message for the wire, without its end: lines ending in CRLF, a dot before a leading dot (RFC 5321 §4.5.2)."""
    lines = re.sub(rb"\r\n|\r|\n", b"\r\n", message)
    if not lines.endswith(b"\r\n"):
        lines += b"\r\n"
    return re.sub(rb"^\.", b"..", lines, flags=re.MULTILINE)


def _failure_name(error: Exception) -> str:
    match error:
        case TimeoutError():
            return "read_timeout"
        case ssl.SSLError():
            return "tls_error"
        case OSError():
            return "connection_reset"
        case _:
            return type(error).__name__


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
