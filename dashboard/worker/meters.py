"""What a worker counts for Prometheus, in its own memory; ``sendonce worker --metrics-port`` serves it.

Labels are names from closed lists only: never an id of a send, never anything about a person.
"""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram, disable_created_metrics, start_http_server

disable_created_metrics()  # type: ignore[no-untyped-call]  # they say when each process began, which nobody asks for

SECONDS = (0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

ATTEMPTS = Counter(
    "sendonce_worker_attempts",
    "Attempts that ended, by what came of them; one call may be an attempt of several sends.",
    ["provider", "outcome"],
)
ATTEMPT_SECONDS = Histogram(
    "sendonce_worker_attempt_duration_seconds", "How long provider calls took.", ["provider"], buckets=SECONDS
)
RELAYED = Counter("sendonce_worker_relayed_requests", "Outbox rows taken, by what they became.", ["verdict"])
REFUSED = Counter("sendonce_worker_refused_moves", "Late moves that the fence refused.")
IN_FLIGHT = Gauge("sendonce_worker_in_flight_attempts", "Provider calls that are running.")
ROUNDS = Counter("sendonce_worker_loop_rounds", "Rounds of a loop that ended without an error.", ["loop"])
ERRORS = Counter("sendonce_worker_loop_errors", "Rounds of a loop that ended with an error.", ["loop"])
NOTICES = Counter(
    "sendonce_worker_alert_notices", "Notices of alerts, by what came of the try.", ["channel", "outcome"]
)

METERS = (ATTEMPTS, ATTEMPT_SECONDS, RELAYED, REFUSED, IN_FLIGHT, ROUNDS, ERRORS, NOTICES)


def serve(host: str, port: int) -> None:
    """Answer scrapes on a port of the worker's own, in a thread. Raises OSError where it is taken."""
    start_http_server(port, addr=host)
