"""Slips of the pen: what somebody may have meant who typed an id, or an address, almost right. Pure.

One slip is a character too many, too few or wrong, or two that changed places (Damerau 1964 counted four in five
mistakes of a typist so). The spellings are looked up by the indexes that the exact ones have: no table is scanned, and
no further index is kept in step with every send.
"""

from __future__ import annotations

from string import ascii_lowercase, ascii_uppercase, digits

from dashboard.identity import BadAddress, normal_address

SEPARATORS = "-_:./ "
LOST = "_-:"
"""Separators that are forgotten anywhere."""
LONGEST = 40
"""Characters: longer ids are pasted, not typed."""
SHORTEST = 4
"""Characters: of shorter ones everything is a slip of everything."""

_ALPHABETS = (digits, ascii_lowercase, ascii_uppercase, SEPARATORS)
_OF_HEX = ("0123456789abcdef", "-")


def spellings(text: str) -> list[str]:
    """What may have been meant: the text in other case, without a sign in front, and with one slip taken back."""
    if not SHORTEST <= len(text) <= LONGEST:
        return []
    found = {text.lower(), text.upper(), text.lstrip("#").strip(), "".join(text.split())}
    found |= {"_".join(text.split()), "-".join(text.split())}
    found |= _shorter(text) | _swapped(text)
    alphabets = _OF_HEX if set(text) <= set("".join(_OF_HEX)) else _ALPHABETS
    for i, character in enumerate(text):
        # What a slip puts in the place of a character is one of its own kind.
        alphabet = next((one for one in alphabets if character in one), "")
        found |= {text[:i] + other + text[i + 1 :] for other in alphabet}
        found |= {text[:i] + other + text[i:] for other in alphabet + LOST}
        found |= {text[: i + 1] + other + text[i + 1 :] for other in alphabet}
    return sorted(found - {text, ""})


def addresses(text: str) -> list[str]:
    """The likeliest other spellings of an address: a character too many, one missing twice over, two changed places.

    Each costs a keyed hash and a look at another place of the index, so what is rarer is left out.
    """
    if not text.isascii() or not _is_address(text):
        return []
    local, _, domain = text.strip().rpartition("@")
    found = _shorter(text) | _swapped(text) | {text[:i] + text[i] + text[i:] for i in range(len(text))}
    found.add(f"{local.partition('+')[0]}@{domain}")
    return sorted({normal_address(one) for one in found if _is_address(one)} - {normal_address(text)})


def _shorter(text: str) -> set[str]:
    return {text[:i] + text[i + 1 :] for i in range(len(text))}


def _swapped(text: str) -> set[str]:
    return {text[:i] + text[i + 1] + text[i] + text[i + 2 :] for i in range(len(text) - 1)}


def _is_address(text: str) -> bool:
    try:
        return bool(normal_address(text))
    except BadAddress:
        return False
