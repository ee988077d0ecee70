"""How a secret reaches a command: from a prompt, a file or standard input, never as an argument, which others see."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from dashboard.cli import Mistake


def read_file(path: str) -> str:
    """The secret that a file holds, without the line break at its end. Raises :class:`Mistake`."""
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Mistake(f"{path} cannot be read: {getattr(error, 'strerror', 'it is not text')}") from None
    if not text:
        raise Mistake(f"{path} is empty")
    return text


def read_stdin() -> str:
    """The first line of standard input. Raises :class:`Mistake`."""
    text = sys.stdin.readline().strip()
    if not text:
        raise Mistake("standard input is empty")
    return text


def ask(name: str, *, needed: bool, how_else: str) -> str:
    """Ask for a secret on the terminal; where there is none, empty, or :class:`Mistake` where it is ``needed``."""
    if sys.stdin.isatty():
        label = name if needed else f"{name} (Enter for none)"
        answer: str = click.prompt(label, hide_input=True, default=None if needed else "", show_default=False)
        return answer.strip()
    if needed:
        raise Mistake(f"{name} is needed: {how_else}")
    return ""
