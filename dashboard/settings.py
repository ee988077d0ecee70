"""The settings of one process: the only reader of the environment.

Every variable may also be given as ``NAME_FILE``, the path of a file that holds the value (how container platforms
hand over secrets). All that is wrong is reported at once.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict


class SettingsError(Exception):
    """The environment cannot be used. ``problems`` has one line for each thing that is wrong."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a process needs to know. Secrets are left out of its printed form."""

    database_url: str = field(repr=False)
    """``DATABASE_URL``: a libpq URI, as libpq takes it (several hosts, socket folders and options included)."""
    database_read_url: str | None = field(default=None, repr=False)
    """``DATABASE_READ_URL``: a replica for what only shows."""
    secret_key: str = field(repr=False)
    """``SENDONCE_SECRET_KEY``: signs sessions and links, keys the address look-up. At least 32 characters."""
    encryption_keys: tuple[tuple[str, bytes], ...] = field(repr=False)
    """``SENDONCE_ENCRYPTION_KEYS``: ``id:base64`` of 32 bytes, by comma. The first encrypts, all of them decrypt."""
    public_url: str = "http://127.0.0.1:8000"
    """``SENDONCE_PUBLIC_URL``: where people and providers reach the dashboard; without a slash at the end."""
    trusted_proxies: int = 0
    """``SENDONCE_TRUSTED_PROXIES``: how many reverse proxies stand before the web, each of which adds the address that
    it was asked from to ``X-Forwarded-For``. What more than these say is anybody's word."""
    environment: str = "production"
    """``SENDONCE_ENVIRONMENT``: this installation's name. A ledger refuses to send under another one (DESIGN §5.22)."""
    log: str = "json"
    """``SENDONCE_LOG``: ``json`` or ``console``."""

    log_sends: bool = False
    """``SENDONCE_LOG_SENDS``: ``yes`` writes a line for each step of each send, by its id."""
    traces: str = field(default="", repr=False)
    """``SENDONCE_TRACES``: the OTLP/HTTP address that gets a span for each step of a send."""
    traces_share: float = 1.0
    """``SENDONCE_TRACES_SHARE``: of so many sends, 0 to 1."""
    metrics_token: str = field(default="", repr=False)
    """``SENDONCE_METRICS_TOKEN``: who asks for ``/metrics`` has to bring it. Without one there are none."""
    alert_smtp_url: str = field(default="", repr=False)
    """``SENDONCE_ALERT_SMTP_URL``: the SMTP server of alerts, ``smtps://user:password@host`` or ``smtp://…``."""
    alert_from: str = ""
    """``SENDONCE_ALERT_FROM``: the address that alerts come from."""
    alert_private_targets: bool = False
    """``SENDONCE_ALERT_PRIVATE_TARGETS``: ``yes`` lets webhooks of alerts go to addresses of the own network."""
    alert_seconds: float = 10.0
    """``SENDONCE_ALERT_SECONDS``: how often each alert rule is looked at."""

    dns_servers: tuple[tuple[str, int], ...] = ()
    """``SENDONCE_DNS_SERVERS``: who is asked about sending domains, ``address`` or ``address:port``, by comma (IPv6 in
    brackets); none: the name servers of the machine."""

    lease_seconds: int = 60
    """How long a claim holds without being renewed."""
    submit_window_seconds: int = 10
    """How long after its start an attempt may write its first byte."""
    request_timeout_seconds: int = 30
    """How long a provider call may take from its first byte."""
    in_flight: int = 200
    """How many provider calls one worker runs at once."""
    lanes: int = 2
    """How many sets one worker has under way at once, each with a database connection."""
    set_size: int = 500
    """How many sends are claimed at once."""
    relay_batch: int = 1000
    """How many outbox rows are relayed at once."""
    retry_seconds: float = 10.0
    """The longest first wait before a refused send is tried again; it doubles with each further try."""
    poll_seconds: float = 0.1
    """How long an idle loop waits for a wake-up before it looks by itself."""


def read_settings(environ: Mapping[str, str]) -> Settings:
    """The settings in ``environ``. Raises :class:`SettingsError` with all problems."""
    reader = _Reader(environ)
    settings = Settings(
        database_url=reader.database_url("DATABASE_URL") or reader.missing("DATABASE_URL", _HINT_DATABASE_URL),
        database_read_url=reader.database_url("DATABASE_READ_URL"),
        secret_key=reader.secret_key("SENDONCE_SECRET_KEY"),
        encryption_keys=reader.encryption_keys("SENDONCE_ENCRYPTION_KEYS"),
        public_url=reader.public_url("SENDONCE_PUBLIC_URL", Settings.public_url),
        trusted_proxies=reader.whole("SENDONCE_TRUSTED_PROXIES", Settings.trusted_proxies, (0, 10)),
        environment=reader.environment("SENDONCE_ENVIRONMENT", Settings.environment),
        log=reader.choice("SENDONCE_LOG", Settings.log, ("json", "console")),
        log_sends=reader.choice("SENDONCE_LOG_SENDS", "no", ("yes", "no")) == "yes",
        traces=reader.text("SENDONCE_TRACES") and reader.public_url("SENDONCE_TRACES", ""),
        traces_share=reader.number("SENDONCE_TRACES_SHARE", Settings.traces_share, (0, 1)),
        metrics_token=reader.token("SENDONCE_METRICS_TOKEN"),
        alert_smtp_url=reader.smtp_url("SENDONCE_ALERT_SMTP_URL"),
        alert_from=reader.text("SENDONCE_ALERT_FROM"),
        alert_private_targets=reader.choice("SENDONCE_ALERT_PRIVATE_TARGETS", "no", ("yes", "no")) == "yes",
        alert_seconds=reader.number("SENDONCE_ALERT_SECONDS", Settings.alert_seconds, (0.05, 60)),
        dns_servers=reader.name_servers("SENDONCE_DNS_SERVERS"),
        lease_seconds=reader.whole("SENDONCE_LEASE_SECONDS", Settings.lease_seconds, (2, 3600)),
        submit_window_seconds=reader.whole("SENDONCE_SUBMIT_WINDOW_SECONDS", Settings.submit_window_seconds, (1, 300)),
        request_timeout_seconds=reader.whole(
            "SENDONCE_REQUEST_TIMEOUT_SECONDS", Settings.request_timeout_seconds, (1, 300)
        ),
        in_flight=reader.whole("SENDONCE_IN_FLIGHT", Settings.in_flight, (1, 2000)),
        lanes=reader.whole("SENDONCE_LANES", Settings.lanes, (1, 32)),
        set_size=reader.whole("SENDONCE_SET_SIZE", Settings.set_size, (1, 10_000)),
        relay_batch=reader.whole("SENDONCE_RELAY_BATCH", Settings.relay_batch, (1, 10_000)),
        retry_seconds=reader.number("SENDONCE_RETRY_SECONDS", Settings.retry_seconds, (0.01, 3600)),
        poll_seconds=reader.number("SENDONCE_POLL_SECONDS", Settings.poll_seconds, (0.01, 60)),
    )
    if settings.alert_smtp_url and "@" not in settings.alert_from:
        reader.missing("SENDONCE_ALERT_FROM", "the address that alerts come from, such as alerts@example.com")
    reader.raise_problems()
    return settings


def read_database_url(environ: Mapping[str, str]) -> str:
    """``DATABASE_URL`` alone, for commands that need no secret (``migrate``). Raises :class:`SettingsError`."""
    reader = _Reader(environ)
    url = reader.database_url("DATABASE_URL") or reader.missing("DATABASE_URL", _HINT_DATABASE_URL)
    reader.raise_problems()
    return url


_HINT_SECRET_KEY = 'python3 -c "import secrets; print(secrets.token_urlsafe(48))"'
_HINT_ENCRYPTION_KEYS = """python3 -c "import base64, os; print('k1:' + base64.b64encode(os.urandom(32)).decode())\""""
_HINT_DATABASE_URL = "a libpq URI of PostgreSQL 15 or newer, such as postgresql://sendonce@db.internal/sendonce"
_KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")
_ENVIRONMENT = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")


class _Reader:
    """Reads variables one by one and gathers what is wrong with them. Says what is wrong, never a secret's value."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._problems: list[str] = []

    def raise_problems(self) -> None:
        if self._problems:
            raise SettingsError(self._problems)

    def _problem(self, name: str, what: str) -> None:
        self._problems.append(f"{name} {what}")

    def missing(self, name: str, hint: str) -> str:
        if not any(problem.startswith(f"{name} ") for problem in self._problems):
            self._problem(name, f"is not set; it is {hint}")
        return ""

    def text(self, name: str) -> str:
        """The value of ``name`` or of the file that ``name``_FILE points to, without blanks around it; else empty."""
        value, path = self._environ.get(name, "").strip(), self._environ.get(f"{name}_FILE", "").strip()
        if value and path:
            self._problem(name, f"is set twice, as {name} and as {name}_FILE; keep one")
        if value or not path:
            return value
        try:
            value = Path(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            self._problem(
                name, f"cannot be read from the file in {name}_FILE: {getattr(error, 'strerror', 'not text')}"
            )
            return ""
        if not value:
            self._problem(name, f"is empty: the file in {name}_FILE holds nothing")
        return value

    def database_url(self, name: str) -> str | None:
        url = self.text(name)
        if not url:
            return None
        scheme, separator, rest = url.partition("://")
        if not separator or scheme.partition("+")[0] not in ("postgresql", "postgres"):
            self._problem(name, f"is not {_HINT_DATABASE_URL}")
            return None
        url = f"postgresql://{rest}"  # SQLAlchemy's postgresql+psycopg:// is a habit of many
        try:
            conninfo_to_dict(url)
        except ProgrammingError:
            # libpq's own words may quote the password.
            self._problem(name, "is not a valid libpq URI: percent-encode special characters in user name and password")
        return url

    def secret_key(self, name: str) -> str:
        value = self.text(name)
        if not value:
            return self.missing(name, f"at least 32 random characters; make it with: {_HINT_SECRET_KEY}")
        if len(value) < 32:
            self._problem(
                name, f"has {len(value)} characters, at least 32 are needed; make it with: {_HINT_SECRET_KEY}"
            )
        return value

    def encryption_keys(self, name: str) -> tuple[tuple[str, bytes], ...]:
        value = self.text(name)
        if not value:
            self.missing(name, f"a list of id:base64 of 32 random bytes; make it with: {_HINT_ENCRYPTION_KEYS}")
        keys: dict[str, bytes] = {}
        for position, part in enumerate(filter(None, map(str.strip, value.split(","))), start=1):
            key_id, separator, encoded = part.partition(":")
            if not separator or not _KEY_ID.fullmatch(key_id):
                self._problem(name, f"key {position} is not id:base64, with an id of 1 to 32 letters, digits, _ or -")
            elif key_id in keys:
                self._problem(name, f"has the id {key_id} twice; every key needs its own")
            else:
                keys[key_id] = key = _bytes_of(encoded)
                if len(key) != 32:
                    self._problem(
                        name, f"key {key_id} is not 32 bytes in base64; make one with: {_HINT_ENCRYPTION_KEYS}"
                    )
        return tuple(keys.items())

    def public_url(self, name: str, default: str) -> str:
        url = (self.text(name) or default).rstrip("/")
        try:
            parts = urlsplit(url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.query
            _ = parts.port  # raises where it is no number
        except ValueError:
            usable = False
        if not usable:
            self._problem(name, "is not an address such as https://mail.example.com")
        return url

    def token(self, name: str) -> str:
        value = self.text(name)
        if value and (len(value) < 16 or not value.isascii() or not value.isprintable() or " " in value):
            self._problem(name, "has fewer than 16 characters, or some that cannot stand in a header")
        return value

    def smtp_url(self, name: str) -> str:
        url = self.text(name)
        try:
            parts = urlsplit(url)
            usable = not url or (parts.scheme in ("smtp", "smtps") and bool(parts.hostname))
            _ = parts.port  # raises where it is no number
        except ValueError:
            usable = False
        if not usable:
            self._problem(name, "is not an address such as smtps://user:password@smtp.example.com")
        return url

    def environment(self, name: str, default: str) -> str:
        value = self.text(name) or default
        if not _ENVIRONMENT.fullmatch(value):
            self._problem(name, "is not a name of up to 40 lower-case letters, digits, _ or -, such as production")
        return value

    def name_servers(self, name: str) -> tuple[tuple[str, int], ...]:
        found = []
        for part in filter(None, map(str.strip, self.text(name).split(","))):
            try:
                parts = urlsplit(f"//{part}")
                address = ipaddress.ip_address(parts.hostname or "")
                if parts.netloc != part or parts.username is not None:
                    raise ValueError
                found.append((str(address), parts.port or 53))
            except ValueError:
                self._problem(
                    name, f"has {part!r}, which is no address of a name server such as 192.0.2.53 or [::1]:53"
                )
        return tuple(found)

    def choice(self, name: str, default: str, allowed: tuple[str, ...]) -> str:
        value = self.text(name) or default
        if value not in allowed:
            self._problem(name, f"is {value!r}; it must be one of: {', '.join(allowed)}")
        return value

    def whole(self, name: str, default: int, bounds: tuple[int, int]) -> int:
        number = self.number(name, default, bounds)
        if number != int(number):
            self._problem(name, f"is {number}; it must be a whole number")
        return int(number)

    def number(self, name: str, default: float, bounds: tuple[float, float]) -> float:
        value = self.text(name)
        try:
            number = float(value) if value else default
        except ValueError:
            number = float("nan")
        if not bounds[0] <= number <= bounds[1]:
            self._problem(name, f"is {value!r}; it must be a number from {bounds[0]} to {bounds[1]}")
            return default
        return number


def _bytes_of(encoded: str) -> bytes:
    """Base64, in its plain or URL-safe alphabet, with or without padding; empty where it is none."""
    plain = encoded.strip().rstrip("=").translate(str.maketrans("-_", "+/"))
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""
