"""Whatever a text holds, its short cuts give what Jinja's sandbox gives."""

from __future__ import annotations

import resource
import tracemalloc
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


HUGE = {
    "repeated": "{{ 'a' * 10**9 }}", "a list": "{{ [0] * 10**9 }}", "a number": "{{ 7 ** (10**9) }}",
    "squared": "{% set n = 10 %}" + "{% set n = n * n %}" * 40,
    "doubled": "{% set s = 'a' %}" + "{% set s = s ~ s %}" * 40,
    "added": "{% set s = 'a' %}" + "{% set s = s + s %}" * 40, "centered": "{{ 'a'|center(10**9) }}",
    "a method": "{{ 'a'.ljust(10**9) }}", "indented": "{{ ('a\n' * 1000)|indent(10**7) }}",
    "formatted": "{{ '%1000000000d' % 1 }}", "a filter": "{{ '%1000000000d'|format(1) }}",
    "a format": "{{ '{:1000000000}'.format(1) }}", "a width": "{{ '{:{}}'.format(1, 10**9) }}",
    "starred": "{{ '%*d' % (10**9, 1) }}", "bytes": "{{ (1).to_bytes(10**9, 'big') }}",
    "replaced": "{{ ('a' * 100000)|replace('a', 'b' * 100000) }}", "joined": "{{ range(10000)|join('b' * 100000) }}",
    "mapped": "{{ range(100000)|map('center', 10000)|list }}",
    "words": "{{ ('a ' * 10000)|wordwrap(1, true, 'b' * 10000) }}",
    "loops": "{% for a in r %}{% for b in r %}{% for c in r %}{% endfor %}{% endfor %}{% endfor %}",
    "tests": "{% for a in r %}{% for b in r if false %}{% endfor %}{% endfor %}",
    "output": "{% for a in r %}{{ large }}{% endfor %}", "names": "{{ large }}" * 100,
    "a macro": "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(100) }}",
    "captured": "{% set s %}{% for a in r %}{{ large }}{% endfor %}{% endset %}",
    "a block of text": "{% macro m() %}{% for a in r %}" + "x" * 100_000 + "{% endfor %}{% endmacro %}{{ m() }}",
}  # fmt: skip


@pytest.mark.parametrize("what", HUGE)
def test_a_template_that_would_take_the_machine_is_refused_before_it_does(what: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(CannotRender, match=r"more than [0-9]+ characters"):
        render(HUGE[what], {"r": list(range(5000)), "large": "x" * 1_000_000}, html=True)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 200_000, "kilobytes"


def test_a_long_but_honest_template_is_rendered() -> None:
    items = [{"name": f"item {i}", "price": i * 100} for i in range(5000)]
    source = (
        "{% for item in items if item.price %}{{ loop.index }}. {{ item.name|upper|truncate(40) }}: "
        "{{ '%.2f'|format(item.price / 100) }} {{ 'EUR'.ljust(5) ~ item.name.replace('item', 'thing') }}\n{% endfor %}"
        "{{ items|map(attribute='name')|join(', ')|wordwrap(70) }}{{ '-' * 70 }}"
    )
    assert render(source, {"items": items}, html=True) == _as_the_sandbox_does(source, {"items": items}, True)


def test_long_texts_do_not_stay_in_memory() -> None:
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for number in range(20):
        render(f"{{{{ word }}}} {number} {'x' * 1_000_000}", {"word": "a"}, html=False)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 5_000_000
