"""Structured logs: each line is one action of a closed list, with facts; never an address, a body or a secret.

>>> log.info(Action.WORKER_STARTED, worker="host-1234-9f2c", loops=["relay", "dispatch"])

An idle loop writes nothing. What libraries log through the standard library comes out in the same form, from the level
*warning* on, as the action ``library``.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import MutableMapping
from enum import StrEnum
from typing import Any

import structlog


class Action(StrEnum):
    """All that is ever logged. To log something new, name it here first."""

    # every process
    LIBRARY = "library"
    DATABASE_UNREACHABLE = "database_unreachable"
    SENDING_OFF = "sending_off"
    FAILED_OVER = "failed_over"
    # the worker
    WORKER_STARTED = "worker_started"
    WORKER_STOPPING = "worker_stopping"
    WORKER_STOPPED = "worker_stopped"
    LOOP_FAILED = "loop_failed"
    PROVIDER_PAUSED = "provider_paused"
    SEND_STEP = "send_step"
    ALERT_FIRED = "alert_fired"
    ALERT_CLEARED = "alert_cleared"
    NOTICE_FAILED = "notice_failed"
    ACCOUNT_BROKE = "account_broke"  # its check found something wrong that was well before
    # the web
    WEB_STARTED = "web_started"
    WEB_STOPPED = "web_stopped"
    REQUEST_FAILED = "request_failed"
    WEBHOOK_REFUSED = "webhook_refused"


class UnknownAction(TypeError):
    """Something was logged that is not in :class:`Action`."""


class Log:
    """Writes one line for each call. Facts are identifiers, counts, times and short words."""

    def info(self, action: Action, /, **facts: object) -> None:
        """The ordinary course of things."""
        _write("info", action, facts)

    def warning(self, action: Action, /, **facts: object) -> None:
        """Trouble that is being dealt with."""
        _write("warning", action, facts)

    def error(self, action: Action, /, **facts: object) -> None:
        """Trouble that a person should look at. In an exception handler, ``exc_info=True`` adds the traceback."""
        _write("error", action, facts)


log = Log()


def configure(form: str = "json") -> None:
    """Write logs to standard error, as ``json`` lines or for people (``console``).

    Called once, by the command that starts a process.
    """
    shared: list[structlog.typing.Processor] = [
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.stdlib.add_log_level,
    ]
    ending: list[structlog.typing.Processor] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        structlog.processors.format_exc_info,
        withhold,
    ]
    if form == "json":
        ending.append(structlog.processors.JSONRenderer(default=str))
    else:
        ending.append(structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), event_key="action"))
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=[*shared, _as_library], processors=ending)
    )
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger(_LOGGER).setLevel(logging.INFO)


_LOGGER = "sendonce"
_WITHHELD = "[withheld]"
_WITHHELD_FACTS = frozenset(
    {
        "address",
        "recipient",
        "to",
        "email",
        "body",
        "text",
        "html",
        "subject",
        "variables",
        "password",
        "secret",
        "token",
    }
    | {"authorization", "api_key", "cookie"}
)
# Wide on purpose: it also hides the password in a database URL.
_ADDRESS = re.compile(r"""[^\s"'<>(),;:=]+@[^\s"'<>(),;]+""")


def withhold(_logger: object, _method: str, facts: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The last line of defence: hide what looks like an address, and facts that should never have been given."""
    for name, value in facts.items():
        facts[name] = _WITHHELD if name in _WITHHELD_FACTS else _without_addresses(value)
    return facts


def _without_addresses(value: object) -> object:
    match value:
        case bool() | int() | float() | None:
            return value
        case list() | tuple() | set() | frozenset():
            return [_without_addresses(item) for item in value]
        case dict():
            return {str(key): _without_addresses(item) for key, item in value.items()}
        case _:
            return _ADDRESS.sub(_WITHHELD, str(value))


def _write(level: str, action: Action, facts: dict[str, object]) -> None:
    if not isinstance(action, Action):
        raise UnknownAction(f"{action!r} is no action; actions are listed in {__name__}.Action")
    structlog.stdlib.get_logger(_LOGGER).log(
        logging.getLevelNamesMapping()[level.upper()], None, action=str(action), **facts
    )


def _as_library(_logger: object, _method: str, facts: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return {"action": Action.LIBRARY.value, "said": facts.pop("event", ""), **facts}
