"""What a rise of duplicate claims means: who carries it, compared with the time before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dashboard.ledger.metrics import Carrier

CARRIES = 0.6
"""Whoever carries this share of a rise carries it; a new endpoint does with less, see :func:`_carries`."""

TELLING = 0.2
"""By so much must the share of the rise be greater than the share it had before: what always carries nearly all of the
deliveries explains nothing by carrying the rise as well."""

KINDS: dict[str, Callable[[Carrier], str]] = {
    "endpoint": lambda carrier: carrier.endpoint,
    "trigger type": lambda carrier: carrier.trigger_type,
    "source": lambda carrier: carrier.source,
    "mailstream": lambda carrier: carrier.mailstream,
    "worker version": lambda carrier: carrier.version,
}
"""What may carry a rise, the one that tells most first."""

OF_LATER = ("endpoint", "worker version")
"""Kinds that only later deliveries are known by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One value of one kind. ``extra``: its later deliveries beyond those to be expected from the time before."""

    kind: str
    value: str
    later: int
    expected: float
    share: float  # of the whole rise; below 0 where it fell
    before: float  # the share that it had before

    @property
    def extra(self) -> float:
        """Later deliveries beyond the expected ones."""
        return self.later - self.expected

    @property
    def is_new(self) -> bool:
        """True where it carried nothing before."""
        return self.before == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What carries a rise. ``named``: the values that do, the most telling first; none where it is spread evenly."""

    extra: float
    named: list[Share]
    shares: list[Share]
    pattern: str
    sentence: str


def explain(before: Sequence[Carrier], during: Sequence[Carrier]) -> Explanation | None:
    """Compare the deliveries of a rise with those before it; None where there are no more later ones than before.

    To be expected are as many later deliveries as there were before for each first one, so that more mail alone is no
    rise. For each kind the shares add up to the whole rise.
    """
    growth = _growth(before, during)
    extra = sum(one.later for one in during) - growth * sum(one.later for one in before)
    if extra <= 1e-9:
        return None
    shares = [share for kind in KINDS for share in _shares(kind, before, during, growth, extra)]
    named = [share for share in shares if share.value and _carries(share)]
    named = [share for share in named if share.share - share.before >= TELLING]
    named.sort(key=lambda share: (-round(min(share.share, 1) - share.before, 1), list(KINDS).index(share.kind)))
    pattern = _pattern(before, during, growth, extra, named)
    return Explanation(extra=extra, named=named, shares=shares, pattern=pattern, sentence=_sentence(extra, named))


def _carries(share: Share) -> bool:
    """Whether a share is large enough to be named.

    Of two webhooks that ask at the same moment chance decides which one is the later: one that was set up beside
    another carries about half of the rise, and the old one the other half. So a new endpoint need not carry most of it.
    """
    return share.share >= CARRIES or (share.kind == "endpoint" and share.is_new)


def _growth(before: Sequence[Carrier], during: Sequence[Carrier]) -> float:
    first = sum(one.recorded for one in before)
    return sum(one.recorded for one in during) / first if first else 0.0


def _shares(
    kind: str, before: Sequence[Carrier], during: Sequence[Carrier], growth: float, extra: float
) -> list[Share]:
    value = KINDS[kind]
    weight: Callable[[Carrier], int] = (lambda one: one.later) if kind in OF_LATER else (lambda one: one.deliveries)
    whole = sum(weight(one) for one in before)
    shares = []
    for name in sorted({value(one) for one in (*before, *during)}):
        usual = [one for one in before if value(one) == name]
        later = sum(one.later for one in during if value(one) == name)
        expected = growth * sum(one.later for one in usual)
        shares.append(
            Share(
                kind=kind, value=name, later=later, expected=expected, share=(later - expected) / extra,
                before=sum(weight(one) for one in usual) / whole if whole else 0.0,
            )
        )  # fmt: skip
    return sorted(shares, key=lambda share: (-share.extra, share.value))


PATTERNS = {
    "mismatch": "The same keys come with other content: a key leaves out something that differs.",
    "queue": "Jobs come again: a job is not acknowledged, or acknowledged too late.",
    "in_progress": "Keys come again before the first delivery is settled: something is slow, and is asked again.",
    "webhook": "The same events come more than once: look for a webhook that was changed or set up twice.",
    "version": "It began with another version of the worker.",
    "none": "No pattern fits.",
}


def _pattern(
    before: Sequence[Carrier], during: Sequence[Carrier], growth: float, extra: float, named: Sequence[Share]
) -> str:
    def share(verdict: Callable[[Carrier], int]) -> float:
        return (sum(map(verdict, during)) - growth * sum(map(verdict, before))) / extra

    values = {one.kind: one.value for one in named}
    if share(lambda one: one.mismatch) >= CARRIES:
        return PATTERNS["mismatch"]
    if values.get("source") == "queue":
        return PATTERNS["queue"]
    if "endpoint" in values or "trigger type" in values:
        return PATTERNS["webhook"]
    if share(lambda one: one.in_progress) >= CARRIES:
        return PATTERNS["in_progress"]
    if "worker version" in values:
        return PATTERNS["version"]
    return PATTERNS["none"]


def _sentence(extra: float, named: Sequence[Share]) -> str:
    more = f"{round(extra)} later {'delivery' if round(extra) == 1 else 'deliveries'} more than before"
    if not named:
        return f"{more}, spread over everything as it was before: nothing in particular carries the rise."
    first, *rest = named
    carried = f"{more}; the {first.kind} {first.value} carries {_percent(first.share)} of them"
    carried += ", and carried none before" if first.is_new else f", against {_percent(first.before)} before"
    if rest:
        carried += "; with it " + " and ".join(f"the {one.kind} {one.value}" for one in rest)
    return carried + "."


def _percent(share: float) -> str:
    return f"{min(share, 1):.0%}".replace("%", " %")
