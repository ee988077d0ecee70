"""Draws ``life-of-a-send.md`` from the table of moves, and the tables of ``providers.md`` and ``complaints.md`` from
what the adapters and the causes say of themselves: ``python -m docs.draw``. A test compares them."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

from dashboard.insight.case import Complaint
from dashboard.insight.complaints import CAUSES, not_looked_into
from dashboard.lifecycle import MOVES, OPEN_STATES, SETTLED_STATES, Move, State
from dashboard.providers import PROVIDERS, provider
from dashboard.providers.base import Provider, Setting

COMPLAINTS_FILE = Path(__file__).with_name("complaints.md")
PROVIDERS_FILE = Path(__file__).with_name("providers.md")
DRAWN = re.compile(r"(<!-- drawn: (?P<what>[a-z ]+) -->\n).*?(<!-- end -->)", re.DOTALL)
FILE = Path(__file__).with_name("life-of-a-send.md")

HEAD = """\
# The life of a send

Drawn from `dashboard/lifecycle.py` by `python -m docs.draw`; edit that table, not this page.

A send is in one of eight states. While it is *open* (pending, claimed, unknown, held) it has a work row, and that row
alone decides who may do what; it is *settled* once it is accepted, failed, suppressed or cancelled. Accepted,
suppressed and cancelled are final: nothing brings such a send to a provider again. Only a person's replay opens a
failed one.

```mermaid
"""

BETWEEN = """\
```

What became of a message after a provider took it (delivered, bounced, complained) is a fact of its own beside the
state, and moves nothing. What evidence tells of a send that was suppressed or cancelled is kept as *taken*: the state
stays.

## The moves

Every move is one statement on the work row, fenced by the state it starts from and, for a worker, by the number of its
claim. Each leaves a row of history, but for the straight path (record, claim, accept by the answer), whose facts stand
in the send and its attempt.

"""


def page() -> str:
    """The whole page."""
    return HEAD + diagram() + BETWEEN + table()


def diagram() -> str:
    """A Mermaid state diagram: open states in one box, an arrow for each pair, with all its moves."""
    lines = ["stateDiagram-v2", "    direction LR", "    state open {"]
    lines += [f"        {state}" for state in OPEN_STATES]
    lines += ["    }"]
    for (before, after), names in _arrows().items():
        lines.append(f"    {before or '[*]'} --> {after}: {', '.join(names)}")
    lines += [f"    {state} --> [*]" for state in SETTLED_STATES if not _leaves(state)]
    return "\n".join(lines) + "\n"


def _arrows() -> dict[tuple[State | None, State], list[str]]:
    arrows: dict[tuple[State | None, State], list[str]] = {}
    for move in MOVES:
        for before in move.from_states:
            for after in move.to_states:
                arrows.setdefault((before, after), []).append(_words(move.name))
    return arrows


def _leaves(state: State) -> bool:
    """Some move of a person leads out of this state."""
    return any(state in move.from_states and set(move.to_states) & set(OPEN_STATES) for move in MOVES)


def table() -> str:
    """The moves as a Markdown table."""
    lines = ["| move | from | to | made by | when |", "|---|---|---|---|---|"]
    return "\n".join(lines + [_line(move) for move in MOVES]) + "\n"


def _line(move: Move) -> str:
    before = ", ".join(str(state) for state in move.from_states if state) or "–"
    after, makers = ", ".join(move.to_states), ", ".join(move.made_by)
    return f"| {_words(move.name)} | {before} | {after} | {makers} | {move.when} |"


def _words(name: str) -> str:
    return name.replace("_", " ")


# ── providers.md ─────────────────────────────────────────────────────────────────────────────────────────────────────


def providers_page(text: str) -> str:
    """The page with every drawn part of it drawn again: ``capabilities``, or ``settings`` of a provider."""

    def draw(found: re.Match[str]) -> str:
        kind, _, name = found["what"].partition(" ")
        table = capabilities_table() if kind == "capabilities" else settings_table(provider(name))
        return f"{found[1]}{table}{found[3]}"

    return DRAWN.sub(draw, text)


def capabilities_table() -> str:
    """What each provider offers at the ambiguous boundary, with an account's default settings."""
    lines = [
        "| provider | honours our key for | our id comes back in events | can be asked by our id"
        " | *not found* is proof after | events by webhook | messages a call | a reply names | hands in replies |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join(lines + [_capabilities(known) for known in PROVIDERS]) + "\n"


def _capabilities(known: Provider) -> str:
    can = known.capabilities({})
    cells = [
        known.title, _span(can.key_window), _yes(can.metadata), _yes(can.look_up), _span(can.settling_time),
        _yes(can.webhooks), _batch_size(known), _NAMED[can.message_id], _yes(can.replies),
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _batch_size(known: Provider) -> str:
    """How many messages one call takes, also where the account has to ask for that."""
    size = known.capabilities({}).batch_size
    for setting in known.settings:
        if setting.for_batches and (asked := known.capabilities({setting.name: "true"}).batch_size) != size:
            return f"{size:,}; {asked:,} with `{setting.name}=true`"
    return f"{size:,}"


_NAMED = {"ours": "our Message-ID", "theirs": "the provider's Message-ID", None: "–"}


def _yes(whether: bool) -> str:
    return "yes" if whether else "–"


def _span(span: timedelta | None) -> str:
    if span is None:
        return "–"
    minutes = int(span.total_seconds() // 60)
    return f"{minutes} min" if minutes % 60 else f"{minutes // 60} h"


def settings_table(known: Provider) -> str:
    """What an account of a provider can be told."""
    lines = ["| setting | | |", "|---|---|---|"]
    return "\n".join(lines + [_setting(one) for one in known.settings]) + "\n"


def _setting(one: Setting) -> str:
    kind = [word for word, holds in (("secret", one.secret), ("required", one.required)) if holds]
    said = f"`{one.default}`" if one.default else ", ".join(kind)
    return f"| `{one.name}` | {said} | {one.help.replace('|', chr(92) + '|')} |"


# ── complaints.md ────────────────────────────────────────────────────────────────────────────────────────────────────


def complaints_page(text: str) -> str:
    """The page with the causes of each complaint drawn again, and those that are not looked into yet."""

    def draw(found: re.Match[str]) -> str:
        kind, _, name = found["what"].partition(" ")
        complaint = Complaint(name)
        return f"{found[1]}{causes_table(complaint) if kind == 'causes' else open_list(complaint)}{found[3]}"

    return DRAWN.sub(draw, text)


def causes_table(complaint: Complaint) -> str:
    """The causes in the order in which they are asked."""
    lines = ["| | cause | |", "|---|---|---|"]
    for number, cause in enumerate(CAUSES[complaint], start=1):
        said = (cause.__doc__ or "").strip().splitlines()[0].replace("*", "")
        lines.append(f"| {number} | {_words(cause.__name__)} | {said} |")
    return "\n".join(lines) + "\n"


def open_list(complaint: Complaint) -> str:
    """What an answer does not rule out."""
    lines = [f"- {one.what} (rests on: {one.rests_on})" for one in not_looked_into(complaint)]
    return "\n".join(lines or ["Nothing."]) + "\n"


if __name__ == "__main__":
    COMPLAINTS_FILE.write_text(complaints_page(COMPLAINTS_FILE.read_text()))
    FILE.write_text(page())
    PROVIDERS_FILE.write_text(providers_page(PROVIDERS_FILE.read_text()))
