"""Generated files, valid and broken: each gives a configuration or a `ConfigFileError`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.gateway.config.problems import ConfigFileError
from dragoman.gateway.config.reading import parse_config
from dragoman.gateway.config.route_tables import _SETTINGS
from dragoman.gateway.config.routing import Router
from dragoman.gateway.config.server_table import FIELDS, VARIABLES
from dragoman.gateway.config.settings import GatewayConfig
from tests.gateway.config.test_reading import EVERYTHING, SMALLEST
from tests.gateway.config.toml_texts import SCALARS, VALUES, documents, quoted

pytestmark = pytest.mark.whole

PLACE_FIELDS = ("kind", "base_url", "api_key_env", "dialect", "headers", "parameters", "timeouts",
                "retries", "api_key", "models")  # fmt: skip
ROUTE_FIELDS = ("model", "to", "name", "defaults", "fixed", "timeouts", "session", "store", "cache",
                "budget", "weight")  # fmt: skip
LIKELY = st.sampled_from(
    [
        *("true", "0", "1", "-1", "1.5", "nan", "inf", "1e300", str(2**63), str(10**30)),
        *map(quoted, ("*", "gpt-*", "openai", "openai:gpt-5", "lab", "echo:", "local:", "local:~x",
                      "local:\x7f", "scripted:/", "scripted:", ":", "::", "*:*", "", " ", "10m",
                      "none", "openai-compatible", "http://[::1", "http://h:99999", "https://h/{x}",
                      "http://h/v1", "memory:", "sqlite:", "anthropic", "LAB_KEY", "day", "a\0b",
                      "/", "//", "/x", "::1", "[::1]", "127.1", "\u0661", "é.example")),
        *("[]", "{}", "[[]]", '["openai", "openai"]', '{to = "openai", weight = 0}',
          '[{to = "lab", weight = 1}, {to = "openai:x", weight = 2}, "echo:"]',
          "{ connect = 1, total = 'none' }", "{ max_tokens = 1 }", "{ tokens = 1 }"),
    ]
)  # fmt: skip
ANY = st.one_of(LIKELY, LIKELY, SCALARS, VALUES)


def table(header: str, fields: tuple[str, ...]) -> st.SearchStrategy[str]:
    """A table with some of these fields, and any values."""
    names = st.sampled_from(fields)
    rows = st.dictionaries(names, ANY, max_size=5)
    return rows.map(lambda each: "\n".join([header, *(f"{n} = {v}" for n, v in each.items())]))


FILES = st.lists(
    st.one_of(
        table("[server]", tuple(FIELDS)),
        table("[providers.lab]", PLACE_FIELDS),
        table("[providers.openai]", PLACE_FIELDS),
        table("[[routes]]", ROUTE_FIELDS),
        table("[[routes]]\nmodel = '*'\nto = 'openai'", ROUTE_FIELDS[2:]),
        table("[[routes]]\nmodel = 'm'\nto = 'echo:'\n[routes.fixed]", tuple(_SETTINGS)),
        table("[aliases]", ("a", "b", "'*'", "''")),
    ),
    max_size=5,
).map("\n".join)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A valid file in which something was cut, repeated or replaced."""
    text = draw(st.sampled_from([SMALLEST, EVERYTHING]))
    for _ in range(draw(st.integers(1, 4))):
        start, end = sorted(draw(st.integers(0, len(text))) for _ in range(2))
        end = min(end, start + draw(st.integers(0, 40)))
        put = draw(st.one_of(st.just(""), st.just(text[start:end] * 2), st.text(max_size=5), ANY))
        text = text[:start] + put + text[end:]
    return text


def loaded(text: str, environ: dict[str, str]) -> GatewayConfig | None:
    """The configuration; None if problems were reported, each at an existing position."""
    try:
        return parse_config(text, environ)
    except ConfigFileError as error:
        problems = error.problems
    lines = text.replace("\r\n", "\n").split("\n")
    assert problems
    for problem in problems:
        assert problem.text
        if problem.line is not None and problem.column is not None:
            assert 1 <= problem.line <= len(lines)
            assert 1 <= problem.column <= len(lines[problem.line - 1]) + 1
    return None


def used(config: GatewayConfig) -> None:
    """Use a configuration: whatever was accepted can be routed."""
    router = Router(config)
    for name in ("gpt-5", "m", "openai:x", "lab:x", "a", "", None):
        route = router.find(name)
        assert route is None or route.order()
    assert repr(config)


@given(st.one_of(FILES, documents()))
def test_any_file_is_read_or_its_problems_are_reported(text: str) -> None:
    """Our tables with any values, and any other documents."""
    config = loaded(text, {"LAB_KEY": "k"})
    if config is not None:
        used(config)


@given(mutated())
@example("")
@example("\ufeff")
@example("\x00")
@example("[[providers]]")
@example("providers.lab = []")
@example("[[routes]]\nmodel='*'\nto='openai'\n[routes.to]")
def test_a_damaged_file_is_read_or_its_problems_are_reported(text: str) -> None:
    """Cut, repeated and replaced anywhere."""
    config = loaded(text, {})
    if config is not None:
        used(config)


@given(st.dictionaries(st.sampled_from(sorted(VARIABLES)), st.text(max_size=12), max_size=4))
def test_any_environment_is_read_or_its_problems_are_reported(environ: dict[str, str]) -> None:
    """Variables with any values."""
    config = loaded(SMALLEST, environ)
    if config is not None:
        used(config)


@pytest.mark.parametrize(
    "text",
    [
        "a" + ".a" * 100_000 + " = 1",
        "a = " + "[" * 100_000,
        "[server]\nport = " + "9" * 100_000,
        "\n".join(f"[[routes]]\nmodel = 'm{n}'\nto = 'openai'" for n in range(5000)),
        "\n".join(f"[providers.p{n}]\nkind = 'opnai'" for n in range(2000)),
        "[[routes]]\nmodel = '" + "*a" * 100_000 + "'\nto = 'openai'",
        "[[routes]]\nmodel = '" + "*a" * 1000 + "'\nto = 'openai'",
        "[[routes]]\nmodel = 'a'\nto = [" + "'x'," * 2000 + "]",
        "[server]\n" + "\n".join(f"k{n} = 1" for n in range(5000)),
    ],
)
def test_large_files_are_fast(text: str) -> None:
    """With any content; quadratic time would be minutes."""
    config = loaded(text, {})
    if config is not None:
        router = Router(config)
        found: list[Any] = [router.find("a" * 500), router.find("m4999")]
        assert len(found) == 2
