"""The system's programs that some tests need, and the Debian packages that bring them.

``python3 tests/programs.py`` prints the packages of those that this machine lacks; ``.ci/run`` installs them.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    """A program under any of its names."""

    names: tuple[str, ...]
    packages: tuple[str, ...]

    def find(self) -> str | None:
        """Its path, if the machine has it."""
        return next(filter(None, map(shutil.which, self.names)), None)


PROGRAMS = {
    "chromium": Program(("chromium", "chromium-browser", "google-chrome"), ("chromium", "fonts-dejavu-core")),
    # Debian keeps it where an ordinary user's PATH does not lead.
    "pgbouncer": Program(("pgbouncer", "/usr/sbin/pgbouncer"), ("pgbouncer",)),
}


def main() -> None:
    """Print the packages to install, one a line."""
    for program in PROGRAMS.values():
        if program.find() is None:
            print(*program.packages, sep="\n")


if __name__ == "__main__":
    main()
