"""Texts with variables: Jinja's sandbox, and two short cuts that give the same bytes many times as fast.

Most texts hold no mark of a template at all, or nothing but names to be filled in; a property test compares the two
short cuts with the sandbox.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError, UndefinedError, nodes
from markupsafe import escape

from dashboard.ledger.bounded import Bounded, budget

MAX_RENDERED = 10_000_000
"""Characters of one rendered part."""

LONGEST_KEPT = 100_000
"""Characters of a text that is kept for the next message: hundreds are kept, and a request may hold millions."""

_TEXT = Bounded(undefined=StrictUndefined, autoescape=False)
_HTML = Bounded(undefined=StrictUndefined, autoescape=True)

_MARK = re.compile(r"\{[{%#]")
_OTHER_LINE_END = re.compile(r"\r\n?")
_MEANT_OTHERWISE = {"self", *_TEXT.globals}
"""Names that mean something in a template even where no variable is called so."""

Render = Callable[[Mapping[str, Any]], str]


class CannotRender(Exception):
    """A variable is missing or the template is broken; the text says which, without any value."""


def render(source: str, variables: Mapping[str, Any], *, html: bool) -> str:
    """The text with its variables put in, escaped in HTML. Raises :class:`CannotRender`."""
    try:
        if not _MARK.search(source):
            text = _as_templates_do(source)
        else:
            renderer = _renderer if len(source) <= LONGEST_KEPT else _renderer.__wrapped__
            text = renderer(source, html)(variables)
    except CannotRender:
        raise
    except TemplateError as error:
        raise CannotRender(_without_values(error)) from None
    except Exception as error:  # whatever a template may do with its variables
        raise CannotRender(f"{type(error).__name__} while rendering") from None
    if len(text) > MAX_RENDERED:
        raise _too_large()
    return text


def _too_large() -> CannotRender:
    return CannotRender(f"a rendered part has more than {MAX_RENDERED} characters")


def _without_values(error: TemplateError) -> str:
    """What Jinja says, unless it quotes an address by which a template looked something up."""
    return error.message if error.message and "@" not in error.message else type(error).__name__


def _as_templates_do(source: str) -> str:
    """A text without marks: Jinja makes all line ends alike and leaves out the last one."""
    return _OTHER_LINE_END.sub("\n", source).removesuffix("\n")


@functools.lru_cache(maxsize=512)
def _renderer(source: str, html: bool) -> Render:
    environment = _HTML if html else _TEXT
    parsed = environment.parse(source)
    parts = _parts(parsed)
    if all(isinstance(part, nodes.TemplateData) or _is_plain_name(part) for part in parts):
        names = tuple(part.name for part in parts if isinstance(part, nodes.Name))
        pattern = "".join(
            part.data.replace("%", "%%") if isinstance(part, nodes.TemplateData) else "%s" for part in parts
        )
        return functools.partial(_fill, pattern, names, escape if html else str)
    with budget():  # what is constant is worked out here
        return functools.partial(_run, environment.from_string(parsed))


def _parts(template: nodes.Template) -> list[nodes.Node]:
    """What a template consists of: texts, names and other expressions, statements."""
    parts: list[nodes.Node] = []
    for node in template.body:
        parts += node.nodes if isinstance(node, nodes.Output) else [node]
    return parts


def _is_plain_name(part: nodes.Node) -> bool:
    return isinstance(part, nodes.Name) and part.name not in _MEANT_OTHERWISE


def _fill(pattern: str, names: tuple[str, ...], shown: Callable[[Any], str], variables: Mapping[str, Any]) -> str:
    left = MAX_RENDERED
    try:
        values = []
        for name in names:
            values.append(shown(variables[name]))
            left -= len(values[-1])
            if left < 0:
                raise _too_large()
        return pattern % tuple(values)
    except KeyError as missing:
        raise UndefinedError(f"{missing} is undefined") from None


def _run(template: Template, variables: Mapping[str, Any]) -> str:
    # What ``render`` does, without copying the environment's globals into a chain of maps for each message.
    context = template.new_context({**template.environment.globals, **variables}, shared=True)
    with budget():
        return template.environment.concat(template.root_render_func(context))
