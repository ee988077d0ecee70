"""The steps of a send, told to the log and to a tracer: off by default, since they cost some of a worker's speed.

A step is told after the transaction that made it, by its send's id and facts of a closed list; never an address, a
body, a key's owner or a secret. In the log it is a line of the action ``send_step``. For OpenTelemetry it is a span:

* The trace id *is* the send id, so that the spans of all processes (the producer's request, the relay, the worker's
  call, the provider's events) are one trace, and anybody who knows the send can look it up.
* The first step, *recorded*, is the root; its span id follows from the send id, so that every other process can name
  its parent without asking. A producer's own ``traceparent`` is linked to it.
* Whether a send is traced at all follows from its id as well, so that a trace is whole or not there.

The library of OpenTelemetry is an extra (requirements/traces.txt), and is imported only where traces are on.
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
from enum import StrEnum
from typing import Any
from uuid import UUID

from dashboard.log import Action, log


class Step(StrEnum):
    """What can happen to a send, as far as it is told here."""

    RECORDED = "recorded"  # the first delivery of its key
    DELIVERED_AGAIN = "delivered_again"
    SUBMITTED = "submitted"  # a provider call ended, whatever came of it
    EVENT = "event"  # the provider told something


FACTS = frozenset({"source", "verdict", "mailstream", "provider", "attempt", "outcome", "told", "worker"})
"""All that is ever told beside the send id. Names, numbers and words of closed lists."""


class TracesMissing(Exception):
    """Traces are wanted, and the library for them is not installed."""


class _Told:
    """What :func:`configure` chose for this process."""

    logged = False
    tracer: Any = None
    provider: Any = None
    share = 0.0


_told = _Told()
_next = threading.local()
_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")


def configure(*, logged: bool, collector: str, share: float, part: str) -> None:
    """Tell steps of this process. ``collector``: an OTLP/HTTP address for spans, or empty; ``share``: of sends, 0 to 1.

    ``part``: web or worker. Called once, after the process was forked. Raises :class:`TracesMissing`.
    """
    _told.logged = logged
    if collector and share > 0:
        _told.provider = _provider(collector, part)
        _told.tracer = _told.provider.get_tracer("sendonce")
        _told.share = share


def close() -> None:
    """Hand over the spans that wait, and tell nothing more."""
    provider, _told.provider, _told.tracer, _told.logged = _told.provider, None, None, False
    if provider is not None:
        provider.shutdown()


def on() -> bool:
    """Whether anybody listens: what is only read to be told need not be read otherwise."""
    return _told.logged or _told.tracer is not None


def tell(
    step: Step, send_id: UUID, *, seconds: float = 0.0, caller: str | None = None, **facts: str | int | None
) -> None:
    """Tell one step that has just ended and took so many ``seconds``. ``caller``: a ``traceparent``.

    Raises KeyError for a fact that is not in :data:`FACTS`.
    """
    if not on():
        return
    if unlisted := facts.keys() - FACTS:
        raise KeyError(f"{sorted(unlisted)} may not be told of a send")
    facts = {name: value for name, value in facts.items() if value is not None}
    if _told.logged:
        log.info(Action.SEND_STEP, step=step.value, send=str(send_id), ms=round(seconds * 1000), **facts)
    if _told.tracer is not None and _traced(send_id):
        _span(step, send_id, seconds, caller, facts)


def root_span(send_id: UUID) -> int:
    """The span id of the step *recorded* of this send."""
    return int.from_bytes(hashlib.sha256(b"recorded" + send_id.bytes).digest()[:8], "big") or 1


def _traced(send_id: UUID) -> bool:
    return int.from_bytes(send_id.bytes[:4], "big") < _told.share * 2**32


def _span(step: Step, send_id: UUID, seconds: float, caller: str | None, facts: dict[str, Any]) -> None:
    from opentelemetry import trace

    flags = trace.TraceFlags(trace.TraceFlags.SAMPLED)
    if step is Step.RECORDED:
        _next.ids = (send_id.int, root_span(send_id))
        context = trace.set_span_in_context(trace.INVALID_SPAN)
    else:
        parent = trace.SpanContext(send_id.int, root_span(send_id), is_remote=True, trace_flags=flags)
        context = trace.set_span_in_context(trace.NonRecordingSpan(parent))
    links = []
    if caller is not None and (found := _TRACEPARENT.fullmatch(caller)):
        linked = trace.SpanContext(int(found[1], 16), int(found[2], 16), is_remote=True, trace_flags=flags)
        links = [trace.Link(linked)]
    kinds = {Step.SUBMITTED: trace.SpanKind.CLIENT, Step.EVENT: trace.SpanKind.SERVER}
    end = time.time_ns()
    span = _told.tracer.start_span(
        f"send {step.value}", context=context, kind=kinds.get(step, trace.SpanKind.INTERNAL), links=links,
        start_time=end - int(seconds * 1e9),
        attributes={"sendonce.send_id": str(send_id), **{f"sendonce.{name}": value for name, value in facts.items()}},
    )  # fmt: skip
    span.end(end_time=end)


def _provider(collector: str, part: str) -> Any:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
        from opentelemetry.sdk.trace.sampling import ALWAYS_ON
    except ImportError:
        raise TracesMissing(
            "SENDONCE_TRACES is set, and OpenTelemetry is not installed: pip install -r requirements/traces.txt"
        ) from None

    class Ids(RandomIdGenerator):
        """The ids that :func:`_span` wants for the root of a send; random ones for all others."""

        def generate_trace_id(self) -> int:
            ids: tuple[int, int] | None = getattr(_next, "ids", None)
            return ids[0] if ids else super().generate_trace_id()

        def generate_span_id(self) -> int:
            ids: tuple[int, int] | None = getattr(_next, "ids", None)
            _next.ids = None
            return ids[1] if ids else super().generate_span_id()

    # Of this process only its part: no host, no command line, no address of anything.
    resource = Resource({"service.name": f"sendonce-{part}"})
    provider = TracerProvider(sampler=ALWAYS_ON, resource=resource, id_generator=Ids())
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=collector)))
    return provider
