"""The sandbox's mailbox as two plain HTML pages: what was accepted, and one message. Everything in them is escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from html import escape

from dashboard.simulator.connection import Answer
from dashboard.simulator.events import iso
from dashboard.simulator.provider import Provider

NEWEST = 200
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;color:#1d2733}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.35rem .6rem;"
    "border-bottom:1px solid #dfe4ea;vertical-align:top}th{color:#5b6775;font-weight:600}"
    "code,pre{font:13px/1.5 ui-monospace,monospace}pre{white-space:pre-wrap;background:#f5f7f9;padding:1rem}"
    "td{overflow-wrap:anywhere}td:first-child,td:nth-child(5){white-space:nowrap}.more{color:#a33;font-weight:600}"
)
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_HEADERS = {
    "content-security-policy": f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


def mailbox(provider: Provider) -> Answer:
    """The newest accepted messages, and how many there are in all."""
    books = provider.books
    summary = books.summary()
    rows = []
    for row in books.newest(NEWEST):
        mail = provider.mails.get(row.message_id)
        copies = books.copies(row.identity)
        subject = escape(mail.subject) if mail else "(no longer kept)"
        link = f'<a href="/_mailbox/{escape(row.message_id)}">{subject or "(no subject)"}</a>' if mail else subject
        rows.append(
            f"<tr><td>{iso(row.at)}<td>{escape(row.recipient)}<td>{link}<td><code>{escape(row.send_id or '–')}</code>"
            f"<td>{escape(row.protocol)}<td{' class=more' if copies > 1 else ''}>{copies}"
        )
    intro = (
        f"<p>{summary['messages']} messages accepted for {summary['sends']} sends; "
        f"{summary['sends_taken_more_than_once']} sends were taken more than once. "
        f"{provider.webhooks.pending} webhook calls are pending. "
        f'The books as JSON: <a href="/_control/books">/_control/books</a></p>'
    )
    head = "".join(f"<th>{name}" for name in ("Accepted", "Recipient", "Subject", "Send", "Over", "Copies"))
    empty = "" if rows else "<p>Nothing yet: send something to this address as if it were the provider.</p>"
    return _page("Sandbox mailbox", [intro, f"<table><tr>{head}{''.join(rows)}</table>", empty])


def message(provider: Provider, message_id: str) -> Answer:
    """One message whose content is still kept."""
    mail = provider.mails.get(message_id)
    if mail is None:
        return _page("Not kept", ['<p>No content is kept for this id. <a href="/">All messages</a></p>'], status=404)
    facts = {
        "From": mail.sender,
        "To": ", ".join(mail.to),
        "Accepted": iso(mail.accepted_at),
        "Provider message id": mail.message_id,
        "Send": mail.identity,
        "Events": ", ".join(fact.name for fact in mail.story) or "none",
    }
    rows = "".join(f"<tr><th>{name}<td>{escape(value)}" for name, value in facts.items())
    parts = [
        f"<h2>{name}</h2><pre>{escape(body)}</pre>" for name, body in (("Text", mail.text), ("HTML", mail.html)) if body
    ]
    return _page(
        mail.subject or "(no subject)", ['<p><a href="/">All messages</a></p>', f"<table>{rows}</table>", *parts]
    )


def _page(title: str, parts: Iterable[str], status: int = 200) -> Answer:
    text = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style><h1>{escape(title)}</h1>{''.join(parts)}</html>"
    )
    return Answer(
        status=status, body=text.encode(errors="replace"), content_type="text/html; charset=utf-8", headers=_HEADERS
    )
