"""A signed webhook, as Standard Webhooks 1.0 describes it (github.com/standard-webhooks/standard-webhooks)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime

from dashboard.channels import News, NotArrived, Outcome
from dashboard.channels.post import post


def send(news: News, *, url: str, secret: str, private: bool, now: datetime | None = None) -> Outcome:
    """Tell it. ``secret`` is ``whsec_`` and base64."""
    at = news.at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    body = json.dumps({"type": news.event, "timestamp": at, "data": news.facts}, separators=(",", ":")).encode()
    try:
        headers = signed(news.id, now or datetime.now(UTC), body, secret)
    except ValueError:
        return NotArrived("its secret cannot be used", for_good=True)
    return post(url, body=body, headers={"Content-Type": "application/json", **headers}, private=private)


def signed(message_id: str, at: datetime, body: bytes, secret: str) -> dict[str, str]:
    """The three headers: HMAC-SHA256 over ``id.timestamp.body``. Raises ValueError for a secret that is none."""
    key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    stamp = str(int(at.timestamp()))
    content = f"{message_id}.{stamp}.".encode() + body
    signature = base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()
    return {"webhook-id": message_id, "webhook-timestamp": stamp, "webhook-signature": f"v1,{signature}"}
