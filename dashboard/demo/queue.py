"""The warehouse of the demo: a job queue that delivers at least once, with its own provider call in each job."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

from dashboard.producer.once import InProgress, Ledger, send_once
from dashboard.providers import provider
from dashboard.providers.base import Deadline, Message, Outcome, Outgoing, Settings

REQUEST_TIMEOUT = 3.0


class Warehouse:
    """Runs the job "tell the customer that the parcel left", however often the queue delivers it."""

    def __init__(self, ledger: Ledger, settings: Settings) -> None:
        """``settings``: of the provider account that the warehouse sends with."""
        self._ledger = ledger
        self._channel = provider("resend").open_channel(settings, request_timeout=REQUEST_TIMEOUT)

    def deliver(self, parcel: str, address: str, *, mailstream: str = "shipping-notice") -> bool:
        """One delivery of the job. Returns whether it may be acknowledged; if not, the queue delivers it again."""
        recipient_id = f"customer_of_{parcel}"
        try:
            send_once(
                self._ledger,
                mailstream=mailstream,
                key=f"shipped:{parcel}",
                recipient_id=recipient_id,
                address=address,
                fingerprint=f"shipping-notice v1 {parcel}",
                trigger=("parcel.shipped", parcel),
                submit=self._submit(parcel, address),
                time_limit=timedelta(seconds=REQUEST_TIMEOUT + 1),
            )
        except InProgress:
            return False
        return True

    def _submit(self, parcel: str, address: str) -> Callable[[str], Outcome]:
        def submit(idempotency_key: str) -> Outcome:
            return self._channel.submit(
                Outgoing(
                    send_id=UUID(idempotency_key),
                    attempt=1,
                    address=address,
                    recipient_name=None,
                    message=Message(
                        sender="Lovelace Warehouse <parcels@lovelace.example>",
                        subject="Your parcel is on its way",
                        text=f"Your parcel {parcel} left our warehouse.\n",
                        date=datetime(2026, 1, 1, tzinfo=UTC),  # the same bytes on every delivery of the job
                    ),
                    deadline=Deadline.after(REQUEST_TIMEOUT),
                )
            )

        return submit

    def close(self) -> None:
        """Drop the connections."""
        self._channel.close()
