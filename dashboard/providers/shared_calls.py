"""Which messages may share a call, and how each is told from the others where the call has one id."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from dashboard.providers.base import Outgoing
from dashboard.providers.wording import why_unsendable


def parted(
    members: Sequence[Outgoing],
    *,
    size: int,
    alike: Callable[[Outgoing], Hashable] = lambda outgoing: (),
    weight: Callable[[Outgoing], int] = lambda outgoing: 0,
    room: int = 0,
) -> list[list[Outgoing]]:
    """Part messages into calls of at most ``size``, as ``SendsBatches.batches`` asks for it.

    ``alike``: what all messages of one call have in common; None for one that goes alone. ``weight``: what a message
    takes of the ``room`` that one call has.
    """
    calls: list[_Call] = []
    open_calls: dict[Hashable, list[_Call]] = {}
    for member in members:
        common = alike(member) if member.attempt == 1 and why_unsendable(member) is None else None
        if common is None:
            calls.append(_Call([member]))
            continue
        address, weighs = member.address.casefold(), weight(member)
        fitting = open_calls.setdefault(common, [])
        call = next((call for call in fitting if call.takes(address, weighs, size=size, room=room)), None)
        if call is None:
            call = _Call()
            calls.append(call)
            fitting.append(call)
        call.add(member, address, weighs)
    return [call.members for call in calls]


def member_id(call_id: str | None, send_id: object) -> str | None:
    """The id of one message in a call to which the provider gave one id for all: that id, and our own behind it.

    Answers and events both know the two, so that the id is one send's alone. What an event without our id names is then
    no message's id, and settles none.
    """
    return f"{call_id}/{send_id}" if call_id and send_id else None


@dataclass(slots=True)
class _Call:
    """A call that is being filled."""

    members: list[Outgoing] = field(default_factory=list)
    addresses: set[str] = field(default_factory=set)
    weight: int = 0

    def takes(self, address: str, weight: int, *, size: int, room: int) -> bool:
        full = len(self.members) >= size or self.weight + weight > room
        return not full and address not in self.addresses

    def add(self, member: Outgoing, address: str, weight: int) -> None:
        self.members.append(member)
        self.addresses.add(address)
        self.weight += weight
