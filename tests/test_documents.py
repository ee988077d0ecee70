"""What README and docs tell to type exists, and what they link to is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from dashboard.cli import sendonce
from dashboard.settings import Settings

CHECKOUT = Path(__file__).resolve().parents[1]
DOCUMENTS = [CHECKOUT / "README.md", CHECKOUT / "CHANGELOG.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]


def code_of(document: Path) -> list[str]:
    """The lines of the code blocks, and what stands between backticks in the text."""
    text = document.read_text()
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    return [line for block in blocks for line in block.splitlines()] + inline


def commands() -> list[tuple[str, str]]:
    """Every command line of ours in the documents, with the document's name."""
    found = []
    for document in DOCUMENTS:
        for line in code_of(document):
            for told in re.findall(r"(?:^|\.venv/bin/)(sendonce [a-z][^|;#]*)", line.strip()):
                found.append((document.name, re.split(r"\s{3,}", told)[0]))
    return found


@pytest.mark.parametrize(("document", "line"), commands())
def test_a_command_that_is_told_exists_with_its_options(document: str, line: str) -> None:
    words = shlex.split(re.sub(r"[\[\]]|…", " ", line))
    command: click.Command = sendonce
    context = click.Context(sendonce)
    rest = words[1:]
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        inner = command.get_command(context, rest[0])
        if inner is None and command is not sendonce and command.invoke_without_command:
            break
        assert inner is not None, f"{document} tells of {line!r}, but there is no {rest[0]!r}"
        command, rest = inner, rest[1:]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    for option in (word.partition("=")[0] for word in rest if word.startswith("--") and word != "--help"):
        assert option in known, f"{document} tells of {option} in {line!r}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_links_lead_somewhere(document: Path) -> None:
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
        assert (document.parent / link).exists(), f"{document.name} links to {link}"


def test_every_variable_of_the_documents_is_read_and_has_the_default_that_is_told() -> None:
    text = (CHECKOUT / "docs" / "production.md").read_text()
    told = re.findall(r"^\| `SENDONCE_(\w+)` \| `?([^|`]+)`? \|", text, re.MULTILINE)
    assert len(told) > 10
    for name, default in told:
        if default.strip() == "required":
            continue
        value = getattr(Settings, name.lower())
        if isinstance(value, bool):
            value = "yes" if value else "no"
        assert f"{value:g}" == default.strip() if isinstance(value, int | float) else value == default.strip(), name
