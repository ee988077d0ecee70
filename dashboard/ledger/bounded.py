"""Jinja's sandbox, bounded: whatever a template does, it costs no more than a budget of characters.

The sandbox keeps a template from reaching anything; it does not keep ``{{ 'a' * 10**9 }}`` from taking a gigabyte, nor
loops within loops from taking an hour. Here each step and each character made is counted *before* it is made, in
one thread's budget, so that the same template with the same variables always ends in the same way.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from typing import Any

from jinja2 import TemplateRuntimeError, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.runtime import Context, markup_join, str_join
from jinja2.sandbox import ImmutableSandboxedEnvironment

BUDGET = 40_000_000
"""Characters that one part may make on its way, four times what it may hold in the end."""

STEP = 200
"""What a step (a call, an operator, a filter, a turn of a loop) counts, in characters."""

_left = threading.local()


class TooMuch(TemplateRuntimeError):
    """The template would make more than it may."""

    def __init__(self) -> None:
        super().__init__(f"the template makes more than {BUDGET} characters on its way, or loops too long")


@contextmanager
def budget() -> Iterator[None]:
    """What is rendered inside has one budget in all."""
    _left.characters = BUDGET
    try:
        yield
    finally:
        del _left.characters


def spend(characters: int) -> None:
    """Count what is about to be made. Raises :class:`TooMuch`."""
    left: int = getattr(_left, "characters", BUDGET) - characters - STEP
    if left < 0:
        raise TooMuch
    _left.characters = left


def _size(value: object) -> int:
    """Characters, members or digits of a value, about."""
    if isinstance(value, int):
        return value.bit_length() // 3
    return len(value) if isinstance(value, Sized) else 0


# ── what an operation would make ─────────────────────────────────────────────────────────────────────────────────────


def _repeated(left: object, right: object) -> int:
    if isinstance(left, int) and isinstance(right, int):
        return _size(left) * _size(right)  # the time for long numbers grows so
    number = next((value for value in (left, right) if isinstance(value, int)), 1)
    return max(number, 0) * max(_size(value) for value in (left, right) if not isinstance(value, int))


def _power(left: object, right: object) -> int:
    return (_size(left) * max(right, 0)) ** 2 if isinstance(left, int) and isinstance(right, int) else 0


def _formatted(text: object, *values: object) -> int:
    """Every number in a format may be a width, and so may a value where the format says that one is."""
    form = str(text)
    inner = [part for value in values for part in (_members(value) if isinstance(value, tuple | Mapping) else [value])]
    widths = sum(int(digits[:12]) for digits in re.findall(r"\d+", form))
    if "*" in form or re.search(r"\{[^}]*\{", form):
        widths += sum(abs(value) for value in inner if isinstance(value, int))
    places = form.count("%") + form.count("{")
    return len(form) + widths + places * max((_size(value) for value in inner), default=0)


def _members(value: tuple[object, ...] | Mapping[Any, object]) -> Iterable[object]:
    return value.values() if isinstance(value, Mapping) else value


def _modulo(left: object, right: object) -> int:
    return _formatted(left, right) if isinstance(left, str) else _size(left) * _size(right)


_OPERATORS: dict[str, Callable[[object, object], int]] = {
    "+": lambda left, right: _size(left) + _size(right),
    "-": lambda left, right: _size(left) + _size(right),
    "*": _repeated,
    "**": _power,
    "%": _modulo,
    "/": lambda left, right: _size(left) * _size(right),
    "//": lambda left, right: _size(left) * _size(right),
}


def _asked_for(value: object, values: Iterable[object]) -> int:
    """For whatever takes widths, counts, and texts to put between or around: as if each were used at every place."""
    numbers = sum(abs(given) for given in values if isinstance(given, int) and not isinstance(given, bool))
    texts = sum(_size(given) for given in values if not isinstance(given, int))
    return numbers + _size(value) * (1 + texts)


def _indented(value: object, values: Iterable[object]) -> int:
    width = sum(
        _size(given) if isinstance(given, str) else abs(given) for given in values if isinstance(given, str | int)
    )
    return _size(value) + (str(value).count("\n") + 1) * width


def _replaced(value: object, values: Iterable[object]) -> int:
    old, new = ([str(given) for given in values] + ["", ""])[:2]
    return _size(value) + str(value).count(old) * len(new)


def _joined(value: object, values: Iterable[object]) -> int:
    """Both ``list|join(between)`` and ``between.join(list)``."""
    lists = [given for given in (value, *values) if isinstance(given, list | tuple | dict | range)]
    between = max((len(given) for given in (value, *values) if isinstance(given, str)), default=0)
    return sum(len(each) * between + sum(_size(part) for part in each) for each in lists)


_MAKE: dict[str, Callable[[object, Iterable[object]], int]] = {
    **dict.fromkeys(("center", "ljust", "rjust", "zfill", "to_bytes", "truncate", "slice", "batch"), _asked_for),
    **dict.fromkeys(("wordwrap", "urlize", "translate", "xmlattr", "sum"), _asked_for),
    **dict.fromkeys(("indent", "expandtabs", "tojson"), _indented),
    **dict.fromkeys(("format", "format_map"), lambda value, values: _formatted(value, *values)),
    "replace": _replaced,
    "join": _joined,
}
"""Filters and methods that make more than they are given, by what they are given. All others make about as much."""


def _spend_on(name: str, value: object, args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
    given = (*args, *kwargs.values())
    make = _MAKE.get(name)
    spend(make(value, given) if make else _size(value))


def _counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that is paid for first. Some get the context or the environment before the value."""
    before = 1 if hasattr(function, "jinja_pass_arg") else 0

    @functools.wraps(function)
    def filtered(*args: Any, **kwargs: Any) -> Any:
        _spend_on(name, args[before] if len(args) > before else "", args[before + 1 :], kwargs)
        return function(*args, **kwargs)

    return filtered


# ── the environment ──────────────────────────────────────────────────────────────────────────────────────────────────


class _Counting(CodeGenerator):
    """Compiles templates that count the turns of their loops, and what ``~`` makes."""

    def blockvisit(self, nodes_: Iterable[nodes.Node], frame: Frame) -> None:
        inside = list(nodes_)
        fixed = sum(
            len(part.data)
            for node in inside
            if isinstance(node, nodes.Output)
            for part in node.nodes
            if isinstance(part, nodes.TemplateData)
        )
        self.writeline(f"environment.spend({fixed})")
        super().blockvisit(inside, frame)

    def visit_For(self, node: nodes.For, frame: Frame) -> None:
        if node.test is not None:  # its turns count, also those that it leaves out
            count = nodes.Call(nodes.EnvironmentAttribute("counts"), [], [], None, None)
            node.test = nodes.And(count, node.test)
        super().visit_For(node, frame)

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
        self.write("environment.concatenated((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")


class Bounded(ImmutableSandboxedEnvironment):
    """The sandbox that renders what customers ask for."""

    code_generator_class = _Counting
    intercepted_binops = frozenset(_OPERATORS)

    def __init__(self, **options: Any) -> None:
        super().__init__(finalize=_shown, **options)
        self.filters = {name: _counted(name, function) for name, function in self.filters.items()}
        del self.globals["lipsum"]

    spend = staticmethod(spend)

    def counts(self) -> bool:
        """True; the call of it is what counts."""
        return True

    def concatenated(self, parts: tuple[object, ...]) -> str:
        """What ``~`` makes."""
        spend(sum(_size(part) for part in parts))
        return markup_join(parts) if self.autoescape else str_join(parts)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """An operator between two values, paid for first."""
        spend(_OPERATORS[operator](left, right))
        return super().call_binop(context, operator, left, right)

    def call(self, context: Context, called: Any, /, *args: Any, **kwargs: Any) -> Any:
        """A method or macro, paid for first."""
        method = getattr(called, "__wrapped__", called)
        _spend_on(getattr(method, "__name__", ""), getattr(method, "__self__", ""), args, kwargs)
        return super().call(context, called, *args, **kwargs)


def _shown(value: Any) -> Any:
    spend(_size(value))
    return value
