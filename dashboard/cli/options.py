"""What commands have in common."""

from __future__ import annotations

from datetime import timedelta

import click

workspace_option = click.option(
    "--workspace", default="default", show_default=True, metavar="NAME", help="The workspace to work in."
)

user_option = click.option("--user", "login", required=True, metavar="LOGIN", help="Who answers for it.")

maybe_user_option = click.option("--user", "login", metavar="LOGIN", help="Who answers for it, in the audit log.")

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")


def example(*lines: str) -> str:
    """An epilog with command lines to copy: ``@click.command(epilog=example("sendonce migrate"))``."""
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)


def span(time: timedelta) -> str:
    """A time span in the form that commands take: 90s, 30m, 2h, 3d; whole days from two on."""
    seconds = round(time.total_seconds())
    for unit, length, least in (("d", 86_400, 2), ("h", 3_600, 1), ("m", 60, 1)):
        if seconds % length == 0 and seconds >= least * length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"
