"""Texts with variables: Jinja's sandbox, and two short cuts that give the same bytes many times as fast.

Most texts hold no mark of a template at all, or nothing but names to be filled in; a property test compares the two
short cuts with the sandbox. What may run for long (loops, arithmetic, calls) is left to a helper process
(``bounded.py``).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError, UndefinedError, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import escape

from dashboard.ledger.bounded import HELPER

MAX_RENDERED = 10_000_000
"""Characters of one rendered part."""

LONGEST_KEPT = 100_000
"""Characters of a text that is kept for the next message: hundreds are kept, and a request may hold millions."""

_TEXT = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
_HTML = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=True)

_MARK = re.compile(r"\{[{%#]")
_OTHER_LINE_END = re.compile(r"\r\n?")
_MEANT_OTHERWISE = {"self", *_TEXT.globals}
"""Names that mean something in a template even where no variable is called so."""

_SHORT = (
    nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.Getattr, nodes.Getitem, nodes.If, nodes.CondExpr,
    nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Filter, nodes.Keyword,
)  # fmt: skip
"""What takes no longer than its text and its variables are long."""
_SHORT_FILTERS = frozenset({
    "capitalize", "count", "d", "default", "e", "escape", "first", "last", "length", "lower", "title", "trim", "upper",
})  # fmt: skip

Render = Callable[[Mapping[str, Any]], str]


class CannotRender(Exception):
    """A variable is missing or the template is broken; the text says which, without any value."""


def render(source: str, variables: Mapping[str, Any], *, html: bool) -> str:
    """The text with its variables put in, escaped in HTML. Raises :class:`CannotRender`."""
    if not _MARK.search(source):
        return _as_templates_do(source)
    with _saying_why():
        renderer = (_renderer if len(source) <= LONGEST_KEPT else _renderer.__wrapped__)(source, html)
        if renderer is not None:
            return renderer(variables)
    rendered, text = HELPER.ask(source, variables, html)
    if not rendered:
        raise CannotRender(text)
    return text


def run_whole(source: str, variables: Mapping[str, Any], *, html: bool) -> str:
    """The same by the sandbox alone, however long it takes. Raises :class:`CannotRender`."""
    with _saying_why():
        template = (_HTML if html else _TEXT).from_string(source)
        return "".join(_within_limit(template.generate(variables)))


@contextmanager
def _saying_why() -> Iterator[None]:
    try:
        yield
    except CannotRender:
        raise
    except TemplateError as error:
        raise CannotRender(_without_values(error)) from None
    except Exception as error:  # whatever a template may do with its variables
        raise CannotRender(f"{type(error).__name__} while rendering") from None


def _within_limit(pieces: Iterable[str]) -> list[str]:
    """The pieces of a text, given up as soon as they are too long."""
    kept: list[str] = []
    length = 0
    for piece in pieces:
        length += len(piece)
        if length > MAX_RENDERED:
            raise CannotRender(f"a rendered part has more than {MAX_RENDERED} characters")
        kept.append(piece)
    return kept


def _without_values(error: TemplateError) -> str:
    """What Jinja says, unless it quotes an address by which a template looked something up."""
    return error.message if error.message and "@" not in error.message else type(error).__name__


def _as_templates_do(source: str) -> str:
    """A text without marks: Jinja makes all line ends alike and leaves out the last one."""
    return _OTHER_LINE_END.sub("\n", source).removesuffix("\n")


@functools.lru_cache(maxsize=512)
def _renderer(source: str, html: bool) -> Render | None:
    """None for what only the helper process may run."""
    environment = _HTML if html else _TEXT
    parsed = environment.parse(source)
    parts = _parts(parsed)
    if all(isinstance(part, nodes.TemplateData) or _is_plain_name(part) for part in parts):
        names = tuple(part.name for part in parts if isinstance(part, nodes.Name))
        pattern = "".join(
            part.data.replace("%", "%%") if isinstance(part, nodes.TemplateData) else "%s" for part in parts
        )
        return functools.partial(_fill, pattern, names, escape if html else str)
    if not all(map(_is_short, parsed.find_all(nodes.Node))):
        return None
    return functools.partial(_run, environment.from_string(parsed))


def _is_short(node: nodes.Node) -> bool:
    return isinstance(node, _SHORT) and (not isinstance(node, nodes.Filter) or node.name in _SHORT_FILTERS)


def _parts(template: nodes.Template) -> list[nodes.Node]:
    """What a template consists of: texts, names and other expressions, statements."""
    parts: list[nodes.Node] = []
    for node in template.body:
        parts += node.nodes if isinstance(node, nodes.Output) else [node]
    return parts


def _is_plain_name(part: nodes.Node) -> bool:
    return isinstance(part, nodes.Name) and part.name not in _MEANT_OTHERWISE


def _fill(pattern: str, names: tuple[str, ...], shown: Callable[[Any], str], variables: Mapping[str, Any]) -> str:
    try:
        return pattern % tuple(_within_limit(shown(variables[name]) for name in names))
    except KeyError as missing:
        raise UndefinedError(f"{missing} is undefined") from None


def _run(template: Template, variables: Mapping[str, Any]) -> str:
    # What ``render`` does, without copying the environment's globals into a chain of maps for each message.
    context = template.new_context({**template.environment.globals, **variables}, shared=True)
    return "".join(_within_limit(template.root_render_func(context)))
