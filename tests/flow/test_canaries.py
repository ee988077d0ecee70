"""Nothing personal and no secret leaves the ledger by a log, a figure or a trace: planted, then looked for.

A town runs with everything turned on that can tell: a line for each step, traces to a collector, figures of web and
worker. What must not come out is planted wherever it can be: in what is asked for in all ways, also badly; in what the
provider refuses and tells; in credentials; in alerts that cannot be delivered. Then all that was written is searched.
"""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from uuid import UUID

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from dashboard import steps
from dashboard.demo.stage import free_port
from dashboard.ledger import access, alert_channels
from dashboard.ledger.accounts import save_account
from dashboard.ledger.alert_channels import Target
from dashboard.ledger.tables import ChannelKind, Role, Severity
from tests.crew import until
from tests.flow.town import SECRET, SENDONCE, Town
from tests.place import KEYS, WEBHOOK_SECRET

ADDRESS = "canaryaddress+x@canarydomain.test"
CANARIES = {
    "address": "canaryaddress", "domain": "canarydomain", "name": "CanaryName", "subject": "CanarySubject",
    "text": "CanaryText", "html": "CanaryHtml", "variable": "CanaryVariable", "password": "canarypassword1",
    "searched": "canarysearched", "unreadable": "CanaryUnreadable", "api_key": "re_canaryapikey",
    "slack": "canaryslackpath", "alert_person": "canaryperson", "metrics": "canarymetricstoken",
    "webhook_secret": WEBHOOK_SECRET, "secret_key": SECRET, "encryption_key": base64.b64encode(KEYS[0][1]).decode(),
}  # fmt: skip
CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@dataclass
class Collector:
    """Takes spans over OTLP."""

    url: str = ""
    bodies: list[bytes] = field(default_factory=list)

    def spans(self) -> list[tuple[str, str, str, str, dict[str, str]]]:
        """Of each span: trace id, span id, parent's id, name, attributes."""
        found = []
        for body in self.bodies:
            for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for of_scope in of_resource.scope_spans:
                    for span in of_scope.spans:
                        told = {a.key: a.value.string_value or str(a.value.int_value) for a in span.attributes}
                        ids = (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())
                        found.append((*ids, span.name, told))
        return found


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A collector of spans on this machine."""
    it = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            it.bodies.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Silence."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    it.url = f"http://127.0.0.1:{server.server_port}/v1/traces"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield it
    server.shutdown()
    thread.join()
    server.server_close()


@dataclass
class Web:
    """``sendonce web`` as a process."""

    url: str
    token: str

    def ask(self, path: str, body: bytes | None = None, **headers: str) -> str:
        """What it answers, whatever the status."""
        request = urllib.request.Request(
            self.url + path, data=body, headers={name.replace("_", "-"): value for name, value in headers.items()}
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            return str(error.read().decode())

    def send(self, body: object) -> str:
        """Ask for a send."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.ask(
            "/api/v1/sends", raw, Authorization=f"Bearer {self.token}", Content_Type="application/json",
            traceparent=CALLER,
        )  # fmt: skip


def message(key: str, **more: object) -> dict[str, object]:
    """A request full of canaries."""
    return {
        "mailstream": "receipts", "key": key,
        "recipient": {"id": "recipient_1", "address": ADDRESS, "name": CANARIES["name"]},
        "trigger": {"type": "order.paid", "id": "order_1"},
        "message": {
            "from": "shop@example.test", "subject": CANARIES["subject"], "text": CANARIES["text"] + " {{ v }}",
            "html": CANARIES["html"], "variables": {"v": CANARIES["variable"]},
        }, **more,
    }  # fmt: skip


def environment(town: Town, collector: Collector) -> dict[str, str]:
    return {
        "DATABASE_URL": town.place.database.url, "SENDONCE_SECRET_KEY": SECRET,
        "SENDONCE_ENCRYPTION_KEYS": ",".join(f"{name}:{base64.b64encode(key).decode()}" for name, key in KEYS),
        "SENDONCE_LOG_SENDS": "yes", "SENDONCE_TRACES": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "200",
        "SENDONCE_METRICS_TOKEN": CANARIES["metrics"], "SENDONCE_ALERT_SECONDS": "0.2",
        "SENDONCE_ALERT_SMTP_URL": "smtp://canary:canarypassword1@127.0.0.1:9?tls=no",
        "SENDONCE_ALERT_FROM": "alerts@example.test",
    }  # fmt: skip


def settle(town: Town) -> str:
    """People, a token, an account and channels that hold secrets; the token."""
    place = town.place
    with place.database.transaction() as connection:
        user = access.add_person(connection, login="ada", name="Ada", password="correct horse battery")
        access.put_role(connection, user_id=user, workspace_id=place.workspace, role=Role.ADMIN)
        made = access.add_token(connection, workspace_id=place.workspace, name="shop")
        save_account(
            connection, place.vault, workspace_id=place.workspace, name="main", provider="resend",
            settings={"base_url": town.simulator.http_url, "honours_keys": "true"},
            secrets={"api_key": CANARIES["api_key"], "webhook_secret": WEBHOOK_SECRET},
            endpoint=town.simulator.http_url,
        )  # fmt: skip
        for kind, target in (
            (ChannelKind.SLACK, Target(url=f"http://127.0.0.1:9/{CANARIES['slack']}")),
            (ChannelKind.EMAIL, Target(addresses=(f"{CANARIES['alert_person']}@example.test",))),
        ):
            alert_channels.add_channel(
                connection, place.vault, workspace_id=place.workspace, name=kind.value, kind=kind, target=target,
                least_severity=Severity.WARNING, user_id=None,
            )  # fmt: skip
            alert_channels.try_channel(connection, kind.value, workspace_id=place.workspace, user_id=None)
    return made[1]


def test_nothing_personal_and_no_secret_comes_out_by_any_way(town: Town, collector: Collector, tmp_path: Path) -> None:
    town.stream(policy="release", keys=True)
    token = settle(town)
    told, log = environment(town, collector), tmp_path / "web.log"
    port = free_port()
    with log.open("wb") as written:
        server = subprocess.Popen(
            [sys.executable, *SENDONCE, "web", "--port", str(port)],
            env=os.environ | told,
            stdout=written,
            stderr=written,
        )
    try:
        web = Web(f"http://127.0.0.1:{port}", token)
        until(lambda: b"web_started" in log.read_bytes(), seconds=60)
        town.simulator.configure(
            webhooks={"url": f"{web.url}/webhooks/{town.place.account}", "secret": WEBHOOK_SECRET, "delay_ms": 1.0},
            fates={"softbounce": 0.5}, http={"http_429": 0.3},
        )  # fmt: skip
        worker = town.worker(**told)
        answers = [web.send(message(f"k:{number}")) for number in range(8)]
        answers += [
            web.send(message("k:1")),
            web.send(message(f"to:{ADDRESS}")),
            web.send(message("k:x", extra=ADDRESS)),
        ]
        answers += [web.send(b'{"key": "' + ADDRESS.encode()), web.send(message("k:9", mailstream=ADDRESS))]
        ids = {UUID(json.loads(answer)["id"]) for answer in answers[:8]}
        town.place.run(
            "insert into sendonce.outbox (send_id, workspace_id, request) values (gen_random_uuid(), %s, %s::jsonb)",
            town.place.workspace, json.dumps({"key": CANARIES["unreadable"], "recipient": ADDRESS}),
        )  # fmt: skip
        login = urllib.parse.urlencode({"login": ADDRESS, "password": CANARIES["password"]}).encode()
        web.ask("/login", login)
        web.ask("/search", urllib.parse.urlencode({"q": f"{CANARIES['searched']}@x.test"}).encode())
        web.ask(
            f"/webhooks/{town.place.account}", ADDRESS.encode(), svix_id="m", svix_timestamp="1", svix_signature="v1,x"
        )
        web.ask("/api/v1/sends", b"{}", Authorization="Bearer " + CANARIES["password"], Content_Type="application/json")
        until(lambda: town.states() == {"accepted": 8}, seconds=60)
        until(lambda: town.place.count("dead_letters") == 1, seconds=60)
        until(lambda: "event" in {span[3].removeprefix("send ") for span in collector.spans()}, seconds=60)
        until(lambda: len({span[0] for span in collector.spans() if span[3] == "send submitted"}) == 8, seconds=60)
        until(lambda: not town.place.all("select from sendonce.alert_notices where tries = 0"), seconds=60)
        scraped = web.ask("/metrics", Authorization=f"Bearer {CANARIES['metrics']}")
        worker.send_signal(signal.SIGTERM)
        worker.wait(60)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)
    logs = log.read_text() + town.log.read_text()
    everything = {"logs": logs, "figures": scraped, "traces": repr(collector.bodies)}
    found = [
        f"{name} in the {where}" for where, text in everything.items() for name, canary in CANARIES.items()
        if canary.lower() in text.lower()
    ]  # fmt: skip
    assert found == []
    assert token not in logs + scraped + repr(collector.bodies)

    # That was no silence: each send can be followed by its id, in the log and as one trace.
    for send_id in ids:
        lines = [json.loads(line) for line in logs.splitlines() if str(send_id) in line]
        assert {"recorded", "submitted"} <= {line["step"] for line in lines}
        spans = [span for span in collector.spans() if span[0] == send_id.hex]
        (root,) = [span for span in spans if span[3] == "send recorded"]
        assert (root[1], root[2]) == (f"{steps.root_span(send_id):016x}", "")
        others = [span for span in spans if span is not root]
        assert {span[2] for span in others} == {root[1]}
        assert {"send submitted"} <= {span[3] for span in others}
    assert re.search(r'sendonce_web_asked_sends_total\{verdict="won"\} 8\.0', scraped)
    allowed = {f"sendonce.{fact}" for fact in steps.FACTS} | {"sendonce.send_id"}
    assert {name for span in collector.spans() for name in span[4]} <= allowed


def test_a_fact_that_is_not_listed_is_refused() -> None:
    steps.configure(logged=True, collector="", share=0, part="test")
    try:
        with pytest.raises(KeyError, match="subject"):
            steps.tell(steps.Step.EVENT, UUID(int=1), subject="Your receipt")
    finally:
        steps.close()


def test_whether_a_send_is_traced_follows_from_its_id() -> None:
    low, high = UUID(int=0), UUID(int=2**128 - 1)
    steps._told.share = 0.5
    try:
        assert (steps._traced(low), steps._traced(high)) == (True, False)
    finally:
        steps._told.share = 0.0
