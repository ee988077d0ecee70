"""Logs say one of a closed list of actions, and nothing that is personal or secret."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from dashboard.log import Action, UnknownAction, configure, log

ADDRESS = "ada.lovelace+shop@example.com"


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    before = (root.level, root.handlers[:])
    yield
    root.setLevel(before[0])
    root.handlers[:] = before[1]
    structlog.reset_defaults()


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_a_line_has_its_action_level_time_and_facts(capsys: pytest.CaptureFixture[str]) -> None:
    configure("json")
    log.info(Action.WORKER_STARTED, worker="host-1-ab", loops=["relay"])
    (line,) = lines(capsys)
    assert line.pop("timestamp").endswith("Z")
    assert line == {"action": "worker_started", "level": "info", "worker": "host-1-ab", "loops": ["relay"]}


def test_an_action_that_is_not_listed_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    configure("json")
    unlisted: Any = "worker_danced"
    for write in (log.info, log.warning, log.error):
        with pytest.raises(UnknownAction, match="worker_danced"):
            write(unlisted)
    assert lines(capsys) == []


def test_an_address_never_comes_out_wherever_it_stands(capsys: pytest.CaptureFixture[str]) -> None:
    configure("json")
    log.info(Action.WORKER_STARTED, said=f"to {ADDRESS}.", many=[{"who": f"<{ADDRESS}>"}], url="postgresql://u:pw@h/d")
    logging.getLogger("vendor").warning("bounced: %s", ADDRESS)
    try:
        raise ValueError(ADDRESS)
    except ValueError:
        log.error(Action.LOOP_FAILED, loop="relay", exc_info=True)
    written = capsys.readouterr().err
    assert "Traceback" in written
    assert "lovelace" not in written
    assert "example.com" not in written
    assert "pw@" not in written


def test_facts_that_should_never_be_given_are_withheld(capsys: pytest.CaptureFixture[str]) -> None:
    configure("json")
    log.info(Action.WORKER_STARTED, subject="Your receipt", token="t0k", password="pw", body="Hello", send="8e1c")
    (line,) = lines(capsys)
    assert {line[name] for name in ("subject", "token", "password", "body")} == {"[withheld]"}
    assert line["send"] == "8e1c"


def test_libraries_come_out_in_the_same_form_and_their_chatter_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    configure("json")
    logging.getLogger("urllib3").info("starting")
    logging.getLogger("urllib3").warning("retrying")
    (line,) = lines(capsys)
    assert (line["action"], line["said"], line["level"]) == ("library", "retrying", "warning")


def test_the_console_form_is_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    configure("console")
    log.warning(Action.PROVIDER_PAUSED, account="main")
    written = capsys.readouterr().err
    assert "provider_paused" in written
    assert "account=main" in written
