"""The books, the control API, the pages, and the simulator as a process: what stays true when it is killed."""

from __future__ import annotations

import json
import signal
import smtplib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dashboard.simulator import Config, Simulator
from tests.simulator.client import Client, Receiver

Start = Callable[..., Simulator]


# ── the control API ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_books_can_be_read_whole_and_in_pages(start: Start) -> None:
    sim = start(honour_keys=False)
    client = Client(sim)
    for n in (0, 1, 2, 2):
        client.send(f"send-{n}")
    whole = client.call("GET", "/_control/books?full=1").json
    assert [row["send_id"] for row in whole["rows"]] == ["send-0", "send-1", "send-2", "send-2"]
    assert whole["summary"]["messages"] == 4
    assert whole["summary"]["sends"] == 3
    assert whole["summary"]["sends_taken_more_than_once"] == 1
    assert whole["summary"]["most_copies_of_one_send"] == 2
    assert whole["counts"]["http_200"] == 4
    page = client.call("GET", "/_control/books?start=1&count=2").json
    assert ([row["send_id"] for row in page["rows"]], page["next_start"]) == (["send-1", "send-2"], 3)
    assert client.call("GET", "/_control/books?start=3").json["next_start"] is None


def test_settings_change_while_it_runs_and_bad_ones_are_refused_with_a_reason(start: Start) -> None:
    sim = start(http={"slow": 0.5})
    client = Client(sim)
    assert client.call("POST", "/_control/config", {"http": {"slow": 0, "http_500_not_taken": 1}}).status == 200
    assert client.send().status == 500
    for change, word in (
        ({"http": {"slwo": 1}}, "http.slwo"),
        ({"http": {"slow": 0.7}}, "add up"),
        ({"webhooks": {"repeat": 2}}, "repeat"),
        ({"seed": 3}, "seed"),
        ({"honour_keys": "yes"}, "honour_keys"),
        ({"webhooks": {"concurrency": 99}}, "concurrency"),
        ([], "object"),
    ):
        refused = client.call("POST", "/_control/config", change)
        assert refused.status == 400
        assert word in refused.json["error"]
    assert client.send().status == 500, "a refused change changes nothing"


def test_a_flush_is_followed_by_idleness(start: Start, receiver: Receiver) -> None:
    client = Client(start(webhooks={"url": receiver.url, "delay_ms": 60_000}))
    client.send("send-1")
    assert client.call("GET", "/_control/idle").json == {"idle": False, "pending_webhooks": 2}
    assert client.call("GET", "/_control/idle?wait=0.1").json["idle"] is False
    assert client.call("POST", "/_control/flush").json == {"released": 2}
    assert client.call("GET", "/_control/idle?wait=10").json == {"idle": True, "pending_webhooks": 0}
    assert len(receiver.arrivals) == 2


def test_a_reset_forgets_messages_keys_and_pending_events(start: Start, receiver: Receiver) -> None:
    sim = start(webhooks={"url": receiver.url, "delay_ms": 60_000})
    client = Client(sim)
    first = client.send(key="k").json["id"]
    assert client.call("POST", "/_control/reset").status == 200
    assert sim.books == []
    assert sim.webhook_counts()["pending"] == 0
    assert client.send(key="k").json["id"] != first
    assert sim.summary()["sends_taken_more_than_once"] == 0


def test_a_post_that_another_site_could_send_unasked_is_refused(start: Start) -> None:
    client = Client(start())
    assert client.call("POST", "/_control/reset", headers={"content-type": "text/plain"}).status == 415
    assert client.call("POST", "/_control/nothing").status == 404
    assert client.call("GET", "/_control/books?count=many").status == 400


# ── the pages ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_mailbox_lists_what_was_accepted_and_escapes_it(start: Start) -> None:
    sim = start()
    client = Client(sim)
    assert "Nothing yet" in client.call("GET", "/").text
    hostile = "<script>alert(1)</script>"
    client.send("send-1", subject=hostile, html=hostile)
    page = client.call("GET", "/")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "ada@example.test" in page.text
    assert "send-1" in page.text
    message = client.call("GET", f"/_mailbox/{sim.books[0].message_id}").text
    for text in (page.text, message):
        assert hostile not in text
        assert "&lt;script&gt;" in text
    assert client.call("GET", "/_mailbox/unknown").status == 404


HOSTILE = ("\ud800", "\x00", "=?utf-8?b?!?=", "\u202egnp.exe", "'; drop table books; --", "\N{PILE OF POO}" * 50)


def test_hostile_text_in_every_field_breaks_neither_books_nor_pages(start: Start, tmp_path: Path) -> None:
    sim = start(data=str(tmp_path))
    client = Client(sim)
    for text in HOSTILE:
        document = {"from": f"{text} <a@example.test>", "to": f"{text} <b@example.test>", "subject": text, "html": text}
        assert (
            client.call("POST", "/emails", {**document, "headers": {"X-Send-Id": text, "X-Other": text}}).status == 200
        )
        raw = f"X-Send-Id: {text}\r\nSubject: {text}\r\n\r\n{text}\r\n".encode(errors="surrogatepass")
        with smtplib.SMTP(sim.smtp_host, sim.smtp_port, timeout=10) as smtp:
            smtp.sendmail("a@example.test", ["b@example.test"], raw)
    rows = client.call("GET", "/_control/books?full=1").json["rows"]
    assert len(rows) == 2 * len(HOSTILE)
    assert client.call("GET", "/").status == 200
    for row in rows:
        assert client.call("GET", f"/_mailbox/{row['message_id']}").status == 200
    assert len((tmp_path / "books.jsonl").read_text().splitlines()) == len(rows)


def test_only_the_newest_contents_are_kept_but_every_row(start: Start) -> None:
    sim = start(keep_content=2)
    client = Client(sim)
    ids = [client.send(f"send-{n}").json["id"] for n in range(3)]
    assert client.call("GET", f"/emails/{ids[0]}").status == 404
    assert client.call("GET", f"/emails/{ids[2]}").status == 200
    assert len(sim.books) == 3
    assert "(no longer kept)" in client.call("GET", "/").text


# ── settings ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_shares_that_make_no_sense_are_refused() -> None:
    for change in ({"http": {"slow": -0.1}}, {"fates": {"bounce": 0.6, "quiet": 0.6}}, {"smtp": {"slow": True}}):
        with pytest.raises(ValueError, match=r"share|must be"):
            Config().changed(change)
    for change in ({"webhooks": {"url": "ftp://x"}}, {"webhooks": 5}):
        with pytest.raises(ValueError, match="webhook"):
            Config().changed(change)


# ── as a process ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def launch() -> Iterator[Callable[..., tuple[subprocess.Popen[str], Any]]]:
    """Starts ``python -m dashboard.simulator`` and reads where it listens."""
    processes: list[subprocess.Popen[str]] = []

    def begin(*options: str) -> tuple[subprocess.Popen[str], Any]:
        command = [sys.executable, "-m", "dashboard.simulator", "--port", "0", "--smtp-port", "0", "--json", *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        processes.append(process)
        assert process.stdout is not None
        return process, json.loads(process.stdout.readline())

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


class At:
    """Where a simulator of another process listens, for `Client`."""

    def __init__(self, where: dict[str, Any]) -> None:
        self.http_url, self.smtp_host, self.smtp_port = where["http_url"], where["smtp_host"], where["smtp_port"]


def test_the_books_survive_a_kill_and_so_do_the_keys(launch: Callable[..., Any], tmp_path: Path) -> None:
    process, where = launch("--data", str(tmp_path), "--faults", _faults(tmp_path, {"http": {"reset_after": 1.0}}))
    with pytest.raises(ConnectionResetError):
        Client(At(where)).send("send-1", key="k")
    with smtplib.SMTP(where["smtp_host"], where["smtp_port"], timeout=10) as client:
        client.sendmail("a@example.test", ["b@example.test"], b"X-Send-Id: send-2\r\n\r\nHi\r\n")
    process.send_signal(signal.SIGKILL)
    process.wait()
    with (tmp_path / "books.jsonl").open("a") as file:
        file.write('{"message_id": "torn')

    _, where = launch("--data", str(tmp_path))
    client = Client(At(where))
    books = client.call("GET", "/_control/books?full=1").json
    assert [row["send_id"] for row in books["rows"]] == ["send-1", "send-2"]
    assert client.send("send-1", key="k").json["id"] == books["rows"][0]["message_id"]
    assert client.send("send-1", key="k", text="other").status == 409
    assert client.call("GET", "/_control/books").json["summary"]["messages"] == 2
    client.send("send-3")
    lines = (tmp_path / "books.jsonl").read_text().splitlines()
    assert [json.loads(line)["send_id"] for line in lines] == ["send-1", "send-2", "send-3"]


def _faults(folder: Path, settings: dict[str, Any]) -> str:
    path = folder / "faults.json"
    path.write_text(json.dumps(settings))
    return str(path)


def test_a_file_of_settings_counts_where_no_option_is_given(launch: Callable[..., Any], tmp_path: Path) -> None:
    file = _faults(tmp_path, {"honour_keys": False, "api_key": "re_file"})
    _, where = launch("--faults", file, "--api-key", "re_test")
    client = Client(At(where))
    assert [client.send(key="k").status for _ in range(2)] == [200, 200], "the option goes before the file"
    assert client.call("GET", "/_control/books").json["summary"]["messages"] == 2, "the file goes before the default"


def test_it_speaks_the_api_of_the_provider_that_is_asked_for(launch: Callable[..., Any], tmp_path: Path) -> None:
    file = _faults(tmp_path, {"error": "maintenance", "webhooks": {"secret": "hook:password"}})
    _, where = launch("--provider", "postmark", "--faults", file)
    client = Client(At(where))
    assert client.call("POST", "/email", {}).json["ErrorCode"] == 10, "no server token"
    email = {"From": "a@example.test", "To": "b@example.test", "TextBody": "Hi"}
    refused = client.call("POST", "/email", email, headers={"x-postmark-server-token": "t"})
    assert (refused.status, refused.json["ErrorCode"]) == (503, 100)
    assert client.call("GET", "/_control/webhook-secret").json == {"secret": "hook:password"}
    assert client.call("POST", "/_control/config", {"error": "of another provider"}).status == 400


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_politely_and_says_nothing_about_addresses(launch: Callable[..., Any], number: signal.Signals) -> None:
    process, where = launch("--faults", "light", "--provider-keys", "ignored")
    for n in range(5):
        Client(At(where)).send(f"send-{n}", to="quiet+secret@example.test")
    process.send_signal(number)
    output, errors = process.communicate(timeout=10)
    assert process.returncode == 0
    assert (output, errors) == ("", "")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--faults", "nowhere.json"], "nowhere.json"),
        (["--webhook-secret", "plain"], "whsec_"),
        (["--provider-keys", "maybe"], "honoured"),
        (["--provider", "nobody"], "sendgrid"),
    ],
)
def test_a_wrong_option_is_told_in_one_line(options: list[str], word: str) -> None:
    command = [sys.executable, "-m", "dashboard.simulator", "--port", "0", "--smtp-port", "0", *options]
    run = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert run.returncode == 2
    assert word in run.stderr
    assert "Traceback" not in run.stderr


def test_a_taken_port_is_told(start: Start) -> None:
    port = start().http_url.rpartition(":")[2]
    command = [sys.executable, "-m", "dashboard.simulator", "--port", port, "--smtp-port", "0"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert run.returncode == 1
    assert port in run.stderr
    assert "Traceback" not in run.stderr
