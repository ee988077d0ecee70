"""What commands have in common."""

from __future__ import annotations

import click

workspace_option = click.option(
    "--workspace", default="default", show_default=True, metavar="NAME", help="The workspace to work in."
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")


def example(*lines: str) -> str:
    """An epilog with command lines to copy: ``@click.command(epilog=example("sendonce migrate"))``."""
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)
