"""The account that the embedded PostgreSQL runs as: our own, except for root, as which PostgreSQL refuses to run.

For root it is an account that every system has, so none need be made. Where that account could not walk down to the
server's folders (a checkout in a home of mode 0700), the server keeps one capability of root: to read and search them.
"""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_CANDIDATES = ("postgres", "nobody")


class EmbeddedPostgresError(Exception):
    """The server could not be had; the message says what to do."""


@dataclass(frozen=True, slots=True)
class ServerAccount:
    """How to start a program as the account: a prefix of the command, or the arguments of ``subprocess``."""

    uid: int | None = None
    gid: int | None = None
    prefix: tuple[str, ...] = ()

    @classmethod
    def find(cls, places: Sequence[Path]) -> Self:
        """The account for a server that has to reach ``places``. Raises :class:`EmbeddedPostgresError`."""
        if os.geteuid() != 0:
            return cls()
        accounts = {account.pw_name: account for account in pwd.getpwall()}
        account = next((accounts[name] for name in _CANDIDATES if name in accounts), None)
        if account is None:
            raise EmbeddedPostgresError(
                "PostgreSQL does not run as root, and there is no account `postgres` or `nobody`"
            )
        if all(_may_search(place, account.pw_uid) for place in places):
            return cls(account.pw_uid, account.pw_gid)
        if shutil.which("setpriv") is None:
            raise EmbeddedPostgresError(
                f"PostgreSQL does not run as root, and the account `{account.pw_name}` cannot reach "
                f"{' and '.join(map(str, places))}: run as an ordinary user, or from a folder that everybody may enter"
            )
        # Without that secure bit, access(2) would forget the capability again, and initdb asks it about its programs.
        capability = "-all,+dac_read_search"
        prefix = (
            "setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups",
            "--securebits=+no_setuid_fixup", f"--inh-caps={capability}", f"--ambient-caps={capability}",
        )  # fmt: skip
        return cls(account.pw_uid, account.pw_gid, prefix)

    @property
    def user(self) -> int | None:
        """For ``subprocess``: None where the prefix, or nothing, switches the account."""
        return None if self.prefix else self.uid

    @property
    def group(self) -> int | None:
        """As :attr:`user`."""
        return None if self.prefix else self.gid

    @property
    def extra_groups(self) -> list[int] | None:
        """Root's further groups are dropped with the account."""
        return None if self.user is None else []

    def own(self, path: Path) -> None:
        """Give ``path`` to the account."""
        if self.uid is not None and self.gid is not None:
            os.chown(path, self.uid, self.gid)


def _may_search(place: Path, uid: int) -> bool:
    """Whether the account can walk down to ``place`` (judged strictly: groups do not count)."""
    steps = [step.stat() for step in (place, *place.parents)]
    return all(step.st_mode & (0o100 if step.st_uid == uid else 0o001) for step in steps)
