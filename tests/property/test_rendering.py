"""Whatever a text holds, its short cuts give what Jinja's sandbox gives."""

from __future__ import annotations

import os
import signal
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from dashboard.ledger.contents import rendered
from dashboard.ledger.rendering import CannotRender, render

NAMES = ["name", "order", "total", "self", "range", "loop", "größe"]

texts = st.lists(
    st.one_of(
        st.sampled_from(["\n", "\r\n", "\r", "\u2028", " ", "<b>", "&", "%", "%s"]),
        st.sampled_from(["{", "}", "}}", "%}", "{{", "{#", "{%"]),
        st.text(max_size=5),
        st.sampled_from(NAMES).map("{{{{ {} }}}}".format),
        st.sampled_from(NAMES).map("{{{{- {} -}}}}".format),
        st.sampled_from([
            "{# a remark #}", "{{ 'a word' }}", "{{ 1.50 }}", "{{ none }}", "{{ name|upper }}", "{{ order.id }}",
            "{% if name %}", "{% else %}", "{% endif %}", "{% set order = 1 %}", "{% raw %}{{ name }}{% endraw %}",
            "{% for name in 'ab' %}{{ name }}{% endfor %}", "{{ name ~ order }}", "{{ name.__class__ }}",
            "{%- if 1 -%}", "{{ absent.part }}",
            "{% block total %}{{ total }}{% endblock %}",
        ]),
    ),
    max_size=6,
).map("".join)  # fmt: skip

variables = st.dictionaries(
    st.sampled_from(NAMES),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just("<a & 'b'>")),
        lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=2), inner, max_size=2)),
        max_leaves=3,
    ),
)


@given(source=texts, variables=variables, html=st.booleans())
@example(source="100 %, {{ name }}{{ name }}\r\n\n", variables={"name": "%s"}, html=False)
@example(source="<p>{{ name }}</p>", variables={"name": "<b>"}, html=True)
@example(source="{{ name }} {{ order }}", variables={"name": 1}, html=False)
@example(source="{{ range }}", variables={}, html=True)
def test_a_text_is_rendered_as_by_the_sandbox(source: str, variables: dict[str, Any], html: bool) -> None:
    assert _ours(source, variables, html) == _as_the_sandbox_does(source, variables, html)


def _ours(source: str, variables: dict[str, Any], html: bool) -> str:
    try:
        return render(source, variables, html=html)
    except CannotRender as error:
        return f"cannot: {error}"


def _as_the_sandbox_does(source: str, variables: dict[str, Any], html: bool) -> str:
    sandbox = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=html)
    try:
        return sandbox.from_string(source).render(variables)
    except TemplateError as error:
        return f"cannot: {error.message}"


def test_a_text_of_a_message_without_variables_is_taken_as_it_is() -> None:
    message = {"from": "a@example.com", "subject": "{{ s }}", "text": "{{ t }}\r\n", "html": "{% h %}"}
    assert rendered(message) == message | {"reply_to": None, "headers": {}}


@pytest.mark.parametrize(("source", "reason"), [
    ("{{ absent }}", "'absent' is undefined"), ("{{ absent }} {{ name|upper }}", "'absent' is undefined"),
    ("{{ people[address] }}", "UndefinedError"),
    ("{{ huge }}", "ValueError while rendering"), ("{{ huge|string }}", "ValueError while rendering"),
])  # fmt: skip
def test_what_cannot_be_rendered_says_why_without_a_value(source: str, reason: str) -> None:
    with pytest.raises(CannotRender) as refused:
        render(source, {"name": "Ada", "huge": 10**5000, "people": {}, "address": "ada@example.com"}, html=False)
    assert str(refused.value) == reason


ENDLESS = {
    "loops in loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "a power of a power": "{{ 9 ** (9 ** 9) }}",
    "a long word": "{{ 'x' * 10 ** 11 }}",
    "a wide word": "{{ 'x'.ljust(10 ** 11) }}",
    "a wide number": "{{ '%99999999999d' % 1 }}",
    "words of words": "{% set n = namespace(x='xx') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
    "a word again and again": "{% for i in range(99999) %}{{ word }}{% endfor %}",
}


@pytest.mark.parametrize("source", ENDLESS.values(), ids=ENDLESS)
def test_what_would_take_for_ever_or_fill_the_memory_cannot_be_rendered(source: str) -> None:
    with pytest.raises(CannotRender):
        render(source, {"word": "x" * 1_000_000}, html=False)
    assert render("{% for a in 'ab' %}{{ a }}{% endfor %}", {}, html=False) == "ab", "the next one has a helper again"


def test_variables_that_are_nested_too_deeply_for_the_helper_cannot_be_rendered() -> None:
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(CannotRender, match="ValueError while rendering"):
        render("{% for a in 'ab' %}{{ a }}{% endfor %}", {"deep": deep}, html=False)


def test_names_that_are_long_again_and_again_are_given_up() -> None:
    with pytest.raises(CannotRender, match="more than 10000000 characters"):
        render("{{ word }}" * 100_000, {"word": "<" * 1_000_000}, html=True)


def test_long_texts_do_not_stay_in_memory() -> None:
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for number in range(20):
        render(f"{{{{ word }}}} {number} {'x' * 1_000_000}", {"word": "a"}, html=False)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 5_000_000


def test_a_helper_that_somebody_ended_is_replaced() -> None:
    source = "{% for a in 'ab' %}{{ a }}{% endfor %}"
    assert render(source, {}, html=False) == "ab"
    children = Path(f"/proc/{os.getpid()}/task/{threading.get_native_id()}/children").read_text().split()
    (helper,) = [int(child) for child in children if b"bounded_helper" in Path(f"/proc/{child}/cmdline").read_bytes()]
    os.kill(helper, signal.SIGKILL)
    assert render(source, {}, html=False) == "ab"
