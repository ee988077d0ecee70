"""An email straight to an SMTP server of the operator's choice, on a connection of its own."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Sequence
from email.message import EmailMessage
from email.utils import format_datetime
from urllib.parse import unquote, urlsplit

from dashboard.channels import Arrived, News, NotArrived, Outcome

SECONDS = 20.0


def send(news: News, *, server: str, sender: str, to: Sequence[str]) -> Outcome:
    """Tell it. ``server``: ``smtps://user:password@host``, or ``smtp://…``, which speaks TLS after STARTTLS.

    ``?tls=no`` at its end sends in plain, for a relay on the same machine.
    """
    if not server:
        return NotArrived("no SMTP server is set for alerts: SENDONCE_ALERT_SMTP_URL")
    try:
        _deliver(_message(news, sender, to), server, sender, to)
    except smtplib.SMTPRecipientsRefused:
        return NotArrived("the SMTP server refused the recipients")
    except smtplib.SMTPResponseException as error:
        return NotArrived(f"the SMTP server answered {error.smtp_code}")
    except TimeoutError:
        return NotArrived("the SMTP server did not answer in time")
    except (smtplib.SMTPException, ssl.SSLError):
        return NotArrived("the SMTP server could not be spoken to")
    except (OSError, ValueError):
        return NotArrived("the SMTP server cannot be reached")
    return Arrived()


def _message(news: News, sender: str, to: Sequence[str]) -> EmailMessage:
    message = EmailMessage()
    message["From"] = sender
    message["To"] = ", ".join(to)
    message["Subject"] = " ".join(news.headline.split())
    message["Date"] = format_datetime(news.at)
    message["Message-ID"] = f"<{news.id}@{sender.rpartition('@')[2].rstrip('>')}>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content("\n".join([news.headline, "", *news.lines, "", news.link, ""]))
    return message


def _deliver(message: EmailMessage, server: str, sender: str, to: Sequence[str]) -> None:
    parts = urlsplit(server)
    secure = parts.scheme == "smtps"
    port = parts.port or (465 if secure else 587)
    context = ssl.create_default_context()
    opened: smtplib.SMTP
    if secure:
        opened = smtplib.SMTP_SSL(parts.hostname or "", port, timeout=SECONDS, context=context)
    else:
        opened = smtplib.SMTP(parts.hostname or "", port, timeout=SECONDS)
    with opened as connection:
        if not secure and "tls=no" not in parts.query:
            connection.starttls(context=context)
        if parts.username:
            connection.login(unquote(parts.username), unquote(parts.password or ""))
        connection.send_message(message, from_addr=sender, to_addrs=list(to))
