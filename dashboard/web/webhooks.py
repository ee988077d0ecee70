"""``/webhooks/<account>``: what providers tell, stored and folded before they are answered (DESIGN §5.15, §5.16); and
``/webhooks/<account>/replies``: mail that they took in.

Replies have an address of their own, since some providers sign what they tell and not what they take in: at one address
whoever reports would choose by what it is verified.

A provider may drop an event for good at an answer of 4xx. So there is 401 for a request that is not the provider's, 404
for an account that does not exist, and 503 for everything that is our own trouble (429 where a provider drops events at
5xx instead, and repeats them at that alone); a request that cannot be understood is kept as a dead letter and answered
with 200.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar
from uuid import UUID

import psycopg
from flask import Blueprint, Response, request
from werkzeug.exceptions import RequestEntityTooLarge

from dashboard import providers, steps
from dashboard.ledger import dead_letters, events, mail_replies
from dashboard.ledger.accounts import Account, read_account
from dashboard.ledger.database import Connection, database_now
from dashboard.ledger.dead_letters import REFUSED, refusal
from dashboard.ledger.signed_tokens import came_with_this_body
from dashboard.log import Action, log
from dashboard.outcomes import as_mail, as_told
from dashboard.providers.base import (
    CannotVerify,
    NotAuthentic,
    ProviderEvent,
    ReadsReplies,
    SignedToken,
    Unreadable,
    Webhook,
)
from dashboard.web.bodies import raw_body
from dashboard.web.meters import EVENTS, WEBHOOKS_REFUSED
from dashboard.web.permissions import by_token
from dashboard.web.state import database, ground, vault

MAX_BODY = 20_000_000
"""Bytes of one request."""
MAX_MAIL = 60_000_000
"""Bytes of one request with a mail in it: more than any of the providers takes in, also when it is in base64."""

SET = 250
"""Events of one transaction: a request may hold many times as many, and its locks must not last."""

Part = TypeVar("Part")

blueprint = Blueprint("webhooks", __name__, url_prefix="/webhooks")


@blueprint.get("/<string:account>")
@by_token
def probe(account: str) -> Response:
    """Some providers look whether anybody is there, by GET or HEAD."""
    return _answer(404, "no such account") if _account(account) is None else _answer(200, "ok")


@blueprint.post("/<string:account>")
@by_token
def receive(account: str) -> Response:
    """Verify, store, fold, commit; then answer."""
    found = _account(account)
    if found is None:
        return _answer(404, "no such account")
    return _received(found, providers.read_webhook, MAX_BODY, _store)


@blueprint.get("/<string:account>/replies")
@by_token
def probe_replies(account: str) -> Response:
    """Likewise."""
    return _answer(200, "ok") if _inbox(account) else _answer(404, "no such account")


@blueprint.post("/<string:account>/replies")
@by_token
def receive_reply(account: str) -> Response:
    """The same for mail that came in; what of it cannot be read is set aside, with the reason and without content."""
    found = _inbox(account)
    if found is None:
        return _answer(404, "no such account")
    return _received(found, providers.read_reply, MAX_MAIL, _store_replies)


def _received(
    found: Account, read: Callable[..., Webhook], longest: int, store: Callable[[Account, Webhook], None]
) -> Response:
    known = providers.provider(found.provider)  # an unknown one is our trouble, not a malformed request
    ground().come_again[found.id] = known.capabilities(found.settings).come_again
    body = raw_body(longest)
    try:
        webhook = read(
            found.provider, dict(request.headers), body, found.settings,
            url=f"{ground().settings.public_url}{request.full_path.rstrip('?')}", remote_address=request.remote_addr,
        )  # fmt: skip
    except CannotVerify as error:
        WEBHOOKS_REFUSED.labels(found.provider).inc()
        log.error(Action.WEBHOOK_REFUSED, account=str(found.id), why=str(error))
        return _come_again("come again")
    except NotAuthentic as error:
        WEBHOOKS_REFUSED.labels(found.provider).inc()
        log.warning(Action.WEBHOOK_REFUSED, account=str(found.id), why=str(error))
        return _answer(401, "not authentic")
    except ValueError as error:
        webhook = Webhook(unreadable=(Unreadable(body, f"malformed: {error}"),))
    if webhook.signed_token is not None and not _is_its_body(found, webhook.signed_token, body):
        log.warning(Action.WEBHOOK_REFUSED, account=str(found.id), why="the signature was used with another body")
        return _answer(401, "not authentic")
    store(found, webhook)
    for event in webhook.events:
        EVENTS.labels(found.provider, str(event.event_type)).inc()
        _tell(found, event)
    if webhook.confirm is not None:
        webhook.confirm()
    return _answer(200, "ok")


@blueprint.errorhandler(RequestEntityTooLarge)
def too_large(_: RequestEntityTooLarge) -> Response:
    """Over our limit, which is ours to raise."""
    log.error(Action.WEBHOOK_REFUSED, why="the body is over the limit")
    return _come_again("over the limit")


@blueprint.errorhandler(Exception)
def trouble(error: Exception) -> Response:
    """Whatever it was, the provider must come again."""
    away = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    log.error(Action.DATABASE_UNREACHABLE if away else Action.REQUEST_FAILED, error=type(error).__name__)
    return _come_again("come again")


def _account(account: str) -> Account | None:
    account_id = _id(account)
    if account_id is None:
        return None
    with database().transaction(durable=False) as connection:
        return read_account(connection, vault(), account_id)


def _inbox(account: str) -> Account | None:
    """The account, where its provider hands in mail."""
    found = _account(account)
    return found if found and isinstance(providers.provider(found.provider), ReadsReplies) else None


def _id(account: str) -> UUID | None:
    try:
        return UUID(account)
    except ValueError:
        return None


def _is_its_body(account: Account, signed: SignedToken, body: bytes) -> bool:
    """Whether what was signed came with no other body. A request that is repeated because it was not stored passes."""
    with database().transaction(durable=False) as connection:
        return came_with_this_body(
            connection, account_id=account.id, token=signed.token, good_until=signed.good_until,
            body=body if signed.content is None else signed.content,
        )  # fmt: skip


def _store(account: Account, webhook: Webhook) -> None:
    """All of it, in sets, each committed before the next: when this returns, nothing is left that could be lost.

    Where it fails half way, the provider comes again, and what is stored by then is only counted.
    """
    for told in _sets(webhook.events):
        with database().transaction() as connection:
            _ingest(connection, account, told)
    for parts in _sets(webhook.unreadable):
        with database().transaction() as connection:
            for part in sorted(parts, key=lambda part: part.raw):  # two requests wait for each other in one order
                _bury(connection, account, part.raw, part.reason)


def _store_replies(account: Account, webhook: Webhook) -> None:
    where = {"workspace_id": account.workspace_id, "account_id": account.id}
    with database().transaction() as connection:
        now = database_now(connection)
        mails = [as_mail(reply) for reply in webhook.replies]
        mail_replies.keep(connection, vault(), **where, mails=mails, received_at=now)
        for part in webhook.unreadable:
            mail_replies.set_aside(connection, **where, content=part.raw, reason=part.reason, received_at=now)


def _tell(account: Account, event: ProviderEvent) -> None:
    if not steps.on() or not event.send_id:
        return
    try:
        send_id = UUID(event.send_id)
    except ValueError:  # what the provider echoed is not ours
        return
    steps.tell(steps.Step.EVENT, send_id, provider=account.provider, told=str(event.event_type))


def _sets(parts: Sequence[Part]) -> Iterator[Sequence[Part]]:
    return (parts[i : i + SET] for i in range(0, len(parts), SET))


def _ingest(connection: Connection, account: Account, told: Sequence[ProviderEvent]) -> None:
    """Store and fold a set. Where the database refuses it, its halves: the bad one is buried and spoils no other."""
    try:
        with connection.transaction():
            events.ingest(
                connection, vault(), workspace_id=account.workspace_id, account_id=account.id,
                told=[as_told(event) for event in told], received_at=database_now(connection),
            )  # fmt: skip
    except REFUSED as error:
        if len(told) == 1:
            _bury(connection, account, told[0].raw, refusal(error))
            return
        for half in (told[: len(told) // 2], told[len(told) // 2 :]):
            _ingest(connection, account, half)


def _bury(connection: Connection, account: Account, payload: bytes, reason: str) -> None:
    dead_letters.bury_webhook(
        connection, vault(), workspace_id=account.workspace_id, account_id=account.id, payload=payload, reason=reason
    )


def _come_again(words: str) -> Response:
    """Our own trouble, in the one answer after which the account's provider tells the same again."""
    account_id = _id((request.view_args or {}).get("account", ""))
    response = _answer(ground().come_again.get(account_id, 503) if account_id else 503, words)
    response.headers["Retry-After"] = "10"
    return response


def _answer(status: int, words: str) -> Response:
    return Response(f"{words}\n", status, content_type="text/plain")
