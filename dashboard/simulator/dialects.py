"""The vendors that can be played."""

from __future__ import annotations

from collections.abc import Mapping

from dashboard.simulator import (
    brevo,
    mailgun,
    mailjet,
    mailtrap,
    mandrill,
    postal,
    postmark,
    resend,
    sendgrid,
    ses,
    sparkpost,
    usesend,
)
from dashboard.simulator.dialect import Dialect

DIALECTS: Mapping[str, Dialect] = {
    each.name: each
    for each in (
        resend.DIALECT,
        sendgrid.DIALECT,
        postmark.DIALECT,
        mailgun.DIALECT,
        ses.DIALECT,
        usesend.DIALECT,
        postal.DIALECT,
        brevo.DIALECT,
        sparkpost.DIALECT,
        mailjet.DIALECT,
        mandrill.DIALECT,
        mailtrap.DIALECT,
    )
}


def dialect_named(name: str) -> Dialect:
    """That dialect. Raises ValueError for one that is not played."""
    if name not in DIALECTS:
        raise ValueError(f"the simulator does not speak {name}; it speaks {', '.join(DIALECTS)}")
    return DIALECTS[name]
