"""How values look: times, ages, counts, words. Filters and functions of the templates."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache, lru_cache
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from flask import Flask, request, url_for
from markupsafe import Markup, escape

from dashboard.identity import discreet
from dashboard.insight.wording import because, in_zone, provider

STATIC = Path(__file__).resolve().parents[2] / "static"

STEPS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def install(app: Flask) -> None:
    """Give the templates what is here."""
    for shape in (
        iso,
        minute,
        utc,
        local,
        day,
        duration,
        ago,
        words,
        plain,
        waived,
        count,
        percent,
        because,
        provider,
        breakable,
        coded,
        discreet,
    ):
        app.jinja_env.filters[shape.__name__] = shape
    app.jinja_env.globals.update(asset=asset, icon=icon, viewer_zone=viewer_zone)


def iso(at: datetime) -> str:
    """For machines: ``2026-11-30T14:10:03.250Z``."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def minute(at: datetime) -> str:
    """For a URL: ``2026-11-30T14:10Z``."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%MZ}"


def utc(at: datetime) -> str:
    """For people, with the zone: ``30 Nov 2026, 14:10:03 UTC``."""
    at = at.astimezone(UTC)
    return f"{at.day} {at:%b %Y, %H:%M:%S} UTC"


def local(at: datetime) -> str:
    """For people, in their own zone: ``30 Nov 2026, 15:10:03``; with UTC behind it where the zone is not known."""
    zone = viewer_zone()
    at = in_zone(at, zone)
    return f"{at.day} {at:%b %Y, %H:%M:%S}" + (" UTC" if zone is UTC else "")


def day(at: datetime) -> str:
    """``30 Nov 2026`` in the viewer's zone."""
    at = in_zone(at, viewer_zone())
    return f"{at.day} {at:%b %Y}"


def viewer_zone() -> tzinfo:
    """The zone that the viewer's browser told in a cookie (js/start.js), else UTC."""
    name = request.cookies.get("zone", "")
    try:
        return ZoneInfo(name) if name and len(name) < 64 else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def breakable(text: object, behind: str = ":/") -> Markup:
    """A key or another name that breaks, where it must, behind these separators and not within a word."""
    parts = re.split(f"(?<=[{re.escape(behind)}])(?=[^{re.escape(behind)}])", str(text))
    return Markup("<wbr>").join(parts)  # which escapes each part


def coded(text: str) -> Markup:
    """A sentence whose names in backticks are set as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704  # escaped before


TOGETHER = "\N{NO-BREAK SPACE}"


def duration(span: timedelta | float | None) -> str:
    """A length of time in its two greatest units: ``2 h 5 min``, ``850 ms``. Nothing gives a dash.

    A number does not stand at the end of a line, and its unit at the beginning of the next.
    """
    if span is None:
        return "–"
    seconds = span.total_seconds() if isinstance(span, timedelta) else float(span)
    if abs(seconds) < 1:
        return f"{round(seconds * 1000)}{TOGETHER}ms"
    if abs(seconds) < 10:
        return f"{seconds:.1f}".removesuffix(".0") + f"{TOGETHER}s"
    left = round(abs(seconds))
    parts: list[str] = []
    for size, unit in STEPS:
        if left >= size and len(parts) < 2:
            parts.append(f"{left // size}{TOGETHER}{unit}")
            left %= size
        elif parts:
            break
    return " ".join(parts)


def ago(at: datetime, now: datetime | None = None) -> str:
    """How long ago, or until when: ``3 min ago``, ``in 2 h``."""
    seconds = ((now or datetime.now(UTC)) - at).total_seconds()
    if abs(seconds) < 1:
        return "now"
    size, unit = next((step for step in STEPS if abs(seconds) >= step[0]), STEPS[-1])
    span = f"{int(abs(seconds) // size)} {unit}"
    return f"{span} ago" if seconds > 0 else f"in {span}"


SAID = {
    "resend": "submit it again",
    "mark_accepted": "count it as accepted",
    "cancel": "cancel it",
    "held.resend": "held: submit again",
    "held.mark_accepted": "held: count as accepted",
}
"""Names that the pages say otherwise: as the buttons do, and not like the provider Resend."""


def words(name: object) -> str:
    """A name of the ledger as words: ``connect_timeout`` is *connect timeout*."""
    if (said := SAID.get(str(name))) is not None:
        return said
    return str(name).replace("_", " ").replace(".", ": ") if name is not None else ""


def plain(value: object) -> str:
    """A value of the audit log as words: yes and no, the parts of a list, names of the ledger."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(plain(part) for part in value) or "nothing"
    return str(value)


def waived(rule: str) -> str:
    """A rule that releasing a hold waives for one attempt, as what stands against it."""
    return {"ambiguous": "an attempt was never answered", "late": "it is late"}.get(rule, words(rule))


def count(number: int) -> str:
    """A number with thin spaces between thousands."""
    return f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def percent(share: float | None) -> str:
    """A share of one: ``2.4 %``. Nothing gives a dash."""
    if share is None:
        return "–"
    return f"{share * 100:.2g} %" if 0 < share < 0.1 else f"{share * 100:.1f} %".replace(".0 ", " ")


def asset(name: str) -> str:
    """The address of a file under ``static/``, with the hash of its content so that it may be kept for ever."""
    return url_for("static", filename=name, v=_hash_of(name))


@cache
def icon(name: str) -> Markup:
    """A drawing of ``static/vendor/icons``, put into the page so that it takes the colour of the text beside it."""
    drawing = (STATIC / "vendor" / "icons" / "outline" / f"{name}.svg").read_text(encoding="utf-8")
    inside = drawing[drawing.index(">", drawing.index("<svg")) + 1 : drawing.index("</svg>")]
    return Markup('<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">{}</svg>').format(Markup(inside.strip()))  # noqa: S704


def _hash_of(name: str) -> str:
    path = STATIC / name
    try:
        return _hash_at(path, path.stat().st_mtime_ns)
    except OSError:
        return "missing"


@lru_cache(maxsize=128)
def _hash_at(path: Path, _modified: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
