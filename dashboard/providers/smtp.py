"""SMTP: one message, one recipient, one transaction; a server that knows no keys and tells nothing later.

Ambiguous is exactly one stretch: from the first byte of the message's end to a complete reply (RFC 5321 §4.2.5, §6.1,
RFC 1047). Everything before it is a definite no. There are no webhooks and no look-up. Clients should wait ten
minutes for the last reply (§4.5.3.2.6): a shorter request time-out turns slow servers into unknown sends.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from dashboard.providers.base import (
    Accepted,
    Ambiguous,
    Capabilities,
    Channel,
    NeverWritten,
    NotAuthentic,
    Outcome,
    Outgoing,
    Rejected,
    Scope,
    Setting,
    Settings,
    Webhook,
    WebhookRequest,
    boot_time,
    domain_settings,
)
from dashboard.providers.conversation import REPLY_LINE, Conversation, Ended
from dashboard.providers.http import TOO_LATE, connect_error
from dashboard.providers.mime import message_bytes, parsed_mailbox
from dashboard.providers.results import SendResult, SmtpFailure, SmtpSession
from dashboard.providers.wire import IdlePool, SubmitDeadlinePassed, open_socket, refusing, tls_context
from dashboard.providers.wording import ascii_domain, for_people, why_unsendable

# ── SMTP's words ─────────────────────────────────────────────────────────────────────────────────────────────────────

ACCOUNT_PHASES = frozenset({"connect", "banner", "ehlo", "starttls", "auth"})
"""What fails here would fail for every message. MAIL, RCPT, DATA and the end speak about this one."""
ACCOUNT_CODES = frozenset({530, 534, 535, 538})
"""Log-in required or refused (RFC 4954 §6), whatever command it answers."""
FINAL_FAILURES = frozenset({"not_offered", "smtputf8_not_offered"})
"""The server cannot do what is asked of it; a repeat changes nothing."""
END_PHASES = ("final_dot", "bdat_last")
EXPECTED = {"data": "354", "data_body": "none"}
"""How the reply that lets the conversation go on begins; with 2 elsewhere. Within the body no reply is a good one."""
_ENHANCED = re.compile(r"[245]\.[0-9]{1,3}\.[0-9]{1,3}(?= |$)")

# ── submit ───────────────────────────────────────────────────────────────────────────────────────────────────────────

Security = Literal["none", "starttls", "tls"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Where to, and as whom."""

    host: str
    port: int
    security: Security
    username: str
    password: str
    local_hostname: str


class SmtpChannel:
    """One account's connections."""

    def __init__(self, server: Server, *, request_timeout: float, pool_size: int = 32) -> None:
        self._server, self._request_timeout = server, request_timeout
        self._tls = tls_context() if server.security != "none" else None
        self._idle: IdlePool[Conversation] = IdlePool(size=pool_size, usable=Conversation.reset)

    def submit(self, outgoing: Outgoing) -> Outcome:
        """One transaction. The talk before the body ends by the submit deadline, the rest ``request_timeout`` later."""
        if reason := why_unsendable(outgoing):
            return NeverWritten(reason, permanent=True)
        try:
            message = message_bytes(outgoing)
            envelope = parsed_mailbox(outgoing.message.sender)[1], ascii_domain(outgoing.address)
        except ValueError as error:
            return NeverWritten(str(error), permanent=True)
        if outgoing.deadline.passed:
            return TOO_LATE
        return self._submit(outgoing, message, envelope)

    def try_out(self) -> Outcome:
        """Connect, introduce oneself, log in, and leave."""
        limit = boot_time() + self._request_timeout
        conversation = self._connect(limit)
        if isinstance(conversation, SmtpFailure):
            return judge(SmtpSession(failure=conversation))[0]
        conversation.limit = limit
        try:
            self._introduce(conversation)
        except Ended as ended:
            return judge(SmtpSession(replies=tuple(conversation.said), failure=ended.failure))[0]
        finally:
            self._let_go(conversation)
        return NeverWritten("there was no message")

    def close(self) -> None:
        """Drop idle connections."""
        self._idle.close()

    def _submit(self, outgoing: Outgoing, message: bytes, envelope: tuple[str, str]) -> Outcome:
        limit = min(outgoing.deadline.at, boot_time() + self._request_timeout)
        conversation = self._idle.take() or self._connect(limit)
        if isinstance(conversation, SmtpFailure):
            return TOO_LATE if outgoing.deadline.passed else judge(SmtpSession(failure=conversation))[0]
        conversation.limit, failure = limit, None
        try:
            self._transact(conversation, outgoing, message, envelope)
        except SubmitDeadlinePassed:
            conversation.whole = False
            return TOO_LATE
        except Ended as ended:
            failure = ended.failure
            if failure and failure.phase not in ("data_body", *END_PHASES) and outgoing.deadline.passed:
                return TOO_LATE
        finally:
            self._let_go(conversation)
        return judge(SmtpSession(replies=tuple(conversation.said), failure=failure))[0]

    def _connect(self, limit: float) -> Conversation | SmtpFailure:
        try:
            sock = open_socket(self._server.host, self._server.port, min(limit, boot_time() + 30.0))
        except (OSError, ValueError) as error:
            return SmtpFailure(phase="connect", error=connect_error(error))
        return Conversation(sock, request_timeout=self._request_timeout)

    def _let_go(self, conversation: Conversation) -> None:
        if conversation.whole and conversation.extensions:
            self._idle.give(conversation)
        else:
            conversation.close()

    def _transact(
        self, conversation: Conversation, outgoing: Outgoing, message: bytes, envelope: tuple[str, str]
    ) -> None:
        if not conversation.extensions:
            self._introduce(conversation)
        sender, recipient = envelope
        international = not (sender.isascii() and recipient.isascii())
        if international and "SMTPUTF8" not in conversation.extensions:
            raise Ended(SmtpFailure(phase="mail_from", error="smtputf8_not_offered"))
        if outgoing.deadline.passed:
            raise SubmitDeadlinePassed
        conversation.step("mail_from", f"MAIL FROM:<{sender}>{' SMTPUTF8' if international else ''}")
        conversation.step("rcpt_to", f"RCPT TO:<{recipient}>")
        conversation.step("data", "DATA", want=EXPECTED["data"])
        conversation.deliver(message, submit_by=outgoing.deadline, seconds=self._request_timeout)

    def _introduce(self, conversation: Conversation) -> None:
        server = self._server
        try:
            if self._tls is not None and server.security == "tls":
                conversation.wrap(self._tls, server.host, phase="starttls")
            conversation.step("banner", None)
            conversation.greet(server.local_hostname)
            if self._tls is not None and server.security == "starttls":
                conversation.start_tls(self._tls, server.host, server.local_hostname)
            if server.username:
                conversation.log_in(server.username, server.password)
        except Ended:
            conversation.whole = False  # half introduced: of no use to the next message
            raise


# ── what a session means ─────────────────────────────────────────────────────────────────────────────────────────────


def judge(session: SmtpSession) -> list[Outcome]:
    """One outcome for each recipient, in their order.

    A refusal of RCPT concerns its recipient; any other refusal before the end concerns all that are left. LMTP
    answers the end once for each recipient that it took (RFC 2033 §4.2).
    """
    outcomes: dict[int, Outcome] = {}
    open_ones = iter(range(len(session.recipients)))
    taken = list(range(len(session.recipients)))
    verdicts: list[str] = []
    for phase, text in session.replies:
        if phase in END_PHASES:
            verdicts.append(text)
        elif phase == "rcpt_to":
            index = next(open_ones, None)
            if index is not None and not text.startswith("2"):
                outcomes[index] = _refusal(phase, text)
                taken.remove(index)
        elif phase != "quit" and not text.startswith(EXPECTED.get(phase, "2")):
            return _filled(outcomes, taken, [_refusal(phase, text)] * len(taken))
    return _filled(outcomes, taken, _ends(session, verdicts, len(taken)))


def _ends(session: SmtpSession, verdicts: list[str], count: int) -> Iterator[Outcome]:
    """The outcomes of the recipients that were taken: by the replies to the end, then by the failure."""
    if verdicts and not session.lmtp:
        verdicts = verdicts[:1] * count
    for index in range(count):
        yield _verdict(verdicts[index]) if index < len(verdicts) else _broken(session)


def _verdict(text: str) -> Outcome:
    """The reply to the end of the message."""
    if REPLY_LINE.fullmatch(text) is None or text[0] == "3":
        return Ambiguous(
            error_class="garbage", reason="the answer to the end of the message is unreadable", phase="final_dot"
        )
    if text[0] == "2":
        return Accepted(None, request_id=for_people(text), phase="final_dot")
    return _refusal("final_dot", text)


def _refusal(phase: str, text: str) -> Rejected:
    """A reply that is not the hoped-for one: 5yz for good, 4yz or a broken line for now."""
    found = REPLY_LINE.fullmatch(text)
    code = int(found[1]) if found and found[1][0] in "45" else None
    enhanced = _ENHANCED.match(found[3] or "") if found and code else None
    account = phase in ACCOUNT_PHASES or code in ACCOUNT_CODES
    return Rejected(
        scope=Scope.ACCOUNT if account else Scope.MESSAGE,
        retryable=code is None or code < 500,
        error_code=f"{code} {enhanced[0]}" if enhanced else (str(code) if code else None),
        reason=for_people(text) if code else f"an answer to {phase} that cannot be read",
        phase=phase,
    )


def _broken(session: SmtpSession) -> Outcome:
    """The outcome where no reply decides: doubt once the end may have been written, else a definite no."""
    failure = session.failure
    last = session.replies[-1][0] if session.replies else "connect"
    phase = failure.phase if failure else ("final_dot" if last in ("data", "data_body") else last)
    error = failure.error if failure else "cut_off"
    written = failure.final_dot_written if failure else None
    if written or (written is None and (phase in END_PHASES or phase == "quit")):
        return Ambiguous(error_class=error, reason=f"{_plain(error)} after the end of the message", phase=phase)
    return Rejected(
        scope=Scope.ACCOUNT if phase in ACCOUNT_PHASES else Scope.MESSAGE,
        retryable=error not in FINAL_FAILURES,
        reason=f"{_plain(error)} at {phase}",
        phase=phase,
    )


def _filled(outcomes: dict[int, Outcome], taken: list[int], rest: Iterator[Outcome] | list[Rejected]) -> list[Outcome]:
    whole = outcomes | dict(zip(taken, rest, strict=True))
    return [whole[index] for index in sorted(whole)]


def _plain(error: str) -> str:
    return error.replace("_", " ")


# ── the provider ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Smtp:
    """The entry in the list of providers."""

    name: str = "smtp"
    title: str = "SMTP"
    settings: tuple[Setting, ...] = (
        Setting(name="host", help="The server's name.", required=True),
        Setting(name="port", help="587 with starttls, 465 with tls, 25 with none."),
        Setting(name="security", help="starttls, tls, or none.", default="starttls"),
        Setting(name="username", help="Empty: no log-in."),
        Setting(name="password", help="For the log-in.", secret=True),
        Setting(name="local_hostname", help="The name given in EHLO; empty: this machine's."),
        *domain_settings(),
    )

    def capabilities(self, settings: Settings) -> Capabilities:
        """Nothing at all: an unknown send is settled by a person."""
        return Capabilities(own_return_path=True, message_id="ours")

    def open_channel(self, settings: Settings, *, request_timeout: float) -> Channel:
        """Connections for one account; with settings that cannot work, a channel that says so to every message."""
        try:
            return SmtpChannel(_server(settings), request_timeout=request_timeout)
        except (ValueError, ssl.SSLError) as error:
            return refusing(str(error))

    def read_webhook(self, request: WebhookRequest, settings: Settings) -> Webhook:
        """SMTP has no webhooks, so no request is authentic."""
        raise NotAuthentic("SMTP has no webhooks")

    def classify(self, result: SendResult) -> Outcome | list[Outcome]:
        """Judge one session without a network; a list where it had several recipients."""
        if not isinstance(result, SmtpSession):
            raise ValueError("SMTP speaks in replies: give a session")
        outcomes = judge(result)
        return outcomes[0] if len(outcomes) == 1 else outcomes


_PORTS: Mapping[str, tuple[Security, int]] = {"starttls": ("starttls", 587), "tls": ("tls", 465), "none": ("none", 25)}


def _server(settings: Settings) -> Server:
    """The settings, checked. Raises ValueError with what to do."""
    host, port = settings.get("host", "").strip(), settings.get("port", "").strip()
    if not re.fullmatch(r"[A-Za-z0-9._:-]{1,253}", host):
        raise ValueError("host must be a server's name or address")
    if (settings.get("security") or "starttls") not in _PORTS:
        raise ValueError("security must be starttls, tls or none")
    security, usual_port = _PORTS[settings.get("security") or "starttls"]
    if port and not (port.isascii() and port.isdecimal() and 0 < int(port[:6]) < 65536):
        raise ValueError("port must be a number from 1 to 65535")
    local_hostname = settings.get("local_hostname", "").strip() or _own_name()
    if not re.fullmatch(r"[A-Za-z0-9._:\[\]-]{1,253}", local_hostname):
        raise ValueError("local_hostname must be a host's name")
    username, password = settings.get("username", ""), settings.get("password", "")
    if "\0" in username + password:
        raise ValueError("username and password cannot hold a NUL character")
    return Server(
        host=host,
        port=int(port) if port else usual_port,
        security=security,
        username=username,
        password=password,
        local_hostname=local_hostname,
    )


def _own_name() -> str:
    """RFC 5321 §4.1.4 wants a full name or an address in brackets."""
    name = socket.gethostname()
    return name if "." in name and re.fullmatch(r"[A-Za-z0-9.-]+", name) else "[127.0.0.1]"
