"""The settings of an account as a command gets them: which are secret, which are missing, and whether they can work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import click

from dashboard.cli import Mistake, secrets
from dashboard.providers.base import Provider, Rejected
from dashboard.providers.wire import Refusing


def read_given(
    chosen: Provider, given: Iterable[str], files: Iterable[str], stdin: str | None
) -> tuple[dict[str, str], dict[str, str]]:
    """Plain and secret settings as they were given. Raises :class:`Mistake`."""
    plain = dict(_pair(one, "--set") for one in given)
    secret = {name: secrets.read_file(path) for name, path in (_pair(one, "--secret-file") for one in files)}
    if stdin is not None:
        secret[stdin] = ""
    known = {one.name: one for one in chosen.settings}
    for name in [*plain, *secret]:
        if name not in known:
            raise Mistake(f"{chosen.title} has no setting {name}; it has {', '.join(known)}")
        if known[name].secret and name in plain:
            raise Mistake(f"{name} is a secret, and others see the command line: use --secret-file or --secret-stdin")
        if not known[name].secret and name in secret:
            raise Mistake(f"{name} is no secret: use --set {name}=…")
    if stdin is not None:
        secret[stdin] = secrets.read_stdin()
    return plain, secret


def ask_missing(chosen: Provider, secret: dict[str, str]) -> None:
    """Ask on the terminal for the secret settings that were not given. Raises :class:`Mistake` where there is none."""
    for one in chosen.settings:
        if one.secret and one.name not in secret:
            how_else = f"--secret-file {one.name}=FILE, or --secret-stdin {one.name}"
            if answer := secrets.ask(one.name, needed=one.required, how_else=how_else):
                secret[one.name] = answer


def apart(chosen: Provider, all_of_them: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The plain and the secret ones."""
    is_secret = {one.name for one in chosen.settings if one.secret}
    secret = {name: value for name, value in all_of_them.items() if name in is_secret}
    return {name: value for name, value in all_of_them.items() if name not in is_secret}, secret


def check(chosen: Provider, given: Mapping[str, str]) -> None:
    """Raise :class:`Mistake` for settings that the adapter itself would refuse."""
    for one in chosen.settings:
        if one.required and not given.get(one.name):
            raise Mistake(f"{one.name} is needed, by --set {one.name}=…: {one.help}")
    channel = chosen.open_channel(given, request_timeout=1)
    channel.close()
    if isinstance(channel, Refusing) and isinstance(channel.outcome, Rejected):
        raise Mistake(channel.outcome.reason)


def _pair(text: str, option: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise click.UsageError(f"{option} takes NAME=…, not {name!r}")
    return name, value
