"""Facts about models: data with sources, what users say in their place, and unknown names."""

from __future__ import annotations

import json
import re
import typing
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman import DragomanError, translate
from dragoman.errors import ConfigError, InvalidInputError
from dragoman.providers.context_windows import SIZES, context_window, max_output_tokens
from dragoman.providers.facts import anthropic, google, openai
from dragoman.providers.facts.listing import facts
from dragoman.providers.facts.names import is_like, is_listed, pattern_of
from dragoman.providers.facts.overrides import VARIABLE, override_facts
from dragoman.providers.facts.sizes import Size
from dragoman.providers.registry import providers

HI = [{"role": "user", "content": "Hi"}]
UP_TO_XHIGH = ("low", "medium", "high", "xhigh")
GENEROUS = {
    "temperature": 0.3, "top_p": 0.9, "presence_penalty": 0.5, "stop": ["x"], "n": 2,
    "logit_bias": {"5": 1}, "reasoning_effort": "minimal", "max_tokens": 50, "seed": 3,
    "parallel_tool_calls": False, "response_format": {"type": "json_object"},
    "web_search_options": {},
}  # fmt: skip


@pytest.fixture(autouse=True)
def _nothing_overridden(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(VARIABLE, raising=False)
    yield
    override_facts(
        dict.fromkeys(("openai:gpt-7*", "openai:gpt-7-foo", "acme-large", "gpt-5"), None)
    )


# --- the rows


def test_every_fact_has_a_source_and_a_date() -> None:
    """No fact is without a source and a date."""
    rows: list[Any] = [*SIZES]
    rows += [row for provider in providers() for row in provider.families]
    assert [row.pattern for row in rows if not row.source or not row.date] == []


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("openai.types.shared.chat_model", openai.NAMES),
        ("openai.types.shared.all_models", openai.NAMES),
        ("anthropic.types.model", anthropic.NAMES),
        ("google.genai._gaos.types.interactions.model", google.NAMES),
    ],
)
def test_all_models_that_the_sdks_name_are_known(module: str, names: tuple[str, ...]) -> None:
    """A new SDK with new models makes this fail: then there are facts to look up."""
    types = pytest.importorskip(module)
    alias = next(getattr(types, name) for name in ("ChatModel", "AllModels", "Model")
                 if name in getattr(types, "__all__", ["Model"]))  # fmt: skip
    listed = [name for name in _literals(alias) if name]
    assert listed
    assert [name for name in listed if not is_listed(names, name)] == []


def _literals(alias: Any) -> Iterator[str]:
    for each in typing.get_args(alias):
        if isinstance(each, str):
            yield each
        else:
            yield from _literals(each)


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("openai:gpt-6-astra@openai-responses", {"thinking.efforts": (*UP_TO_XHIGH, "max")}),
        ("openai:gpt-6-astra@openai-chat", {"thinking.efforts": UP_TO_XHIGH}),
        ("openai:gpt-6.1-terra@openai-responses",
         {"thinking.efforts": ("none", *UP_TO_XHIGH, "max")}),
        ("openai:gpt-6-sol@openai-chat",
         {"sampling.token_limit_fields": ("max_completion_tokens",),
          "thinking.is_on_by_default": True}),
        ("openai:gpt-5.5@openai-chat", {"thinking.is_on_by_default": True}),
        ("openai:gpt-5-pro@openai-responses", {"thinking.efforts": ("high",)}),
        ("openai:ft:gpt-4o-mini:acme::a1@openai-chat", {"thinking.form": "never"}),
        ("anthropic:claude-haiku-5-5@anthropic",
         {"thinking.form": "adaptive", "thinking.is_always_on": False}),
        ("anthropic:claude-fable-5-2@anthropic",
         {"thinking.is_always_on": True, "tools.takes_forced_choice": False}),
        ("anthropic:claude-sonnet-5-5@anthropic", {"thinking.off_word": "between_tools"}),
        ("google:gemini-4-argon@gemini", {"thinking.efforts": ("low", "medium", "high")}),
        ("google:gemini-2.5-flash-image@gemini", {"thinking.form": "never"}),
        ("mistral:mistral-large-latest@openai-responses", {"host.resumes_answers": False}),
    ],
)  # fmt: skip
def test_the_newest_models_have_their_flags(name: str, flags: dict[str, Any]) -> None:
    """The models named by the installed SDKs have the flags that were observed."""
    provider, _, rest = name.partition(":")
    model, _, dialect = rest.rpartition("@")
    target = dragoman.provider(provider).target(model, dialect)
    assert {flag: target.flag(flag) for flag in flags} == flags


def test_sizes_of_the_newest_models() -> None:
    """Windows grew, and answers have limits."""
    assert context_window("openai:gpt-6-astra") == 1_050_000
    assert context_window("anthropic/claude-opus-5-5") == 1_000_000
    assert context_window("gpt-5.4-mini-2026-03-17") == 400_000
    assert max_output_tokens("anthropic:claude-haiku-4-5") == 64_000
    assert max_output_tokens("gpt-4o") is None


@pytest.mark.parametrize(
    ("model", "window", "output"),
    [
        ("claude-2.0", 100_000, 4_096),
        ("claude-instant-1.2", 100_000, 4_096),
        ("claude-2.1", 200_000, 4_096),
        ("claude-opus-4-1", 200_000, 32_000),
        ("claude-sonnet-4-5", 200_000, 64_000),
        ("claude-mythos-5", 1_000_000, 128_000),
        ("claude-fable-5-2", 1_000_000, 128_000),
        ("claude-sonnet-5", 1_000_000, 128_000),
    ],
)
def test_sizes_of_claudes_old_and_new(model: str, window: int, output: int | None) -> None:
    """As Anthropic documents them; the first row that fits counts."""
    assert context_window(f"anthropic:{model}") == window
    assert max_output_tokens(f"anthropic:{model}") == output


def test_a_model_that_always_thinks_is_asked_for_little() -> None:
    """Claude Opus 5.5 refuses `disabled`: the least effort is sent, and that is reported."""
    body = {"model": "m", "messages": HI, "reasoning_effort": "none"}
    sent = translate(body, source="openai-chat", target="anthropic:claude-opus-5-5")
    assert "thinking" not in sent.body
    assert sent.body["output_config"] == {"effort": "low"}
    assert [loss.path for loss in sent.losses] == ["thinking"]


def test_thinking_is_disabled_with_the_models_own_value() -> None:
    """Claude Sonnet 5.5 uses `between_tools` for disabled thinking."""
    body = {"model": "m", "messages": HI, "reasoning_effort": "none"}
    sent = translate(body, source="openai-chat", target="anthropic:claude-sonnet-5-5")
    assert sent.body["thinking"] == {"type": "between_tools"}
    assert sent.losses == ()


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "f"}}])
def test_a_forced_tool_choice_is_a_loss_where_it_is_rejected(choice: Any) -> None:
    """The newest Claude models reject `any` and `tool`.

    It is a loss, and the tool can still be called.
    """
    tools = [{"type": "function", "function": {"name": name}} for name in ("f", "g")]
    body = {"model": "m", "messages": HI, "tools": tools, "tool_choice": choice}
    sent = translate(body, source="openai-chat", target="anthropic:claude-opus-5-5")
    assert sent.body.get("tool_choice", {"type": "auto"}) == {"type": "auto"}
    assert "tool_choice" in [loss.path for loss in sent.losses]
    names = [tool["name"] for tool in sent.body["tools"]]
    assert names == (["f", "g"] if choice == "required" else ["f"])


# --- names that nobody lists


@pytest.mark.parametrize(
    ("provider", "model", "closest"),
    [
        ("openai", "gpt-5.2-proo", "gpt-5.2-pro"),
        ("openai", "gpt-5-typo", "gpt-5"),
        ("openai", "gpt-6-sool", "gpt-6-sol"),
        ("anthropic", "claude-sonet-4-5", "claude-sonnet-4-5"),
        ("google", "gemini-3.6-flahs", "gemini-3.6-flash"),
        ("google", "models/gemini-3.6-flahs", "gemini-3.6-flash"),
        ("openai", "zzz", "no listed name is similar"),
    ],
)
def test_an_unknown_model_is_a_warning_with_a_suggestion(
    provider: str, model: str, closest: str
) -> None:
    """`check` warns about it in every dialect of the provider."""
    place = dragoman.provider(provider)
    for dialect in place.dialects:
        target = place.target(model, dialect)
        found = dragoman.dialect(dialect).check({}, target=target)
        (told,) = [each for each in found if "doesn't list this model" in each.message]
        assert (told.severity, told.path) == ("warning", "model")
        assert closest in told.message


@pytest.mark.parametrize(
    "name",
    [
        "openai:ft:gpt-4o-2024-08-06:acme:x:abc", "openai:gpt-4o-2024-11-20", "openai:gpt-5",
        "openai:gpt-4o-search-preview-2025-03-11", "openai:GPT-5", "openai:gpt-4-0125-preview",
        "anthropic:claude-3-5-sonnet-latest", "anthropic:claude-sonnet-4-5-20250929",
        "anthropic:claude-mythos-preview", "google:models/gemini-2.5-pro-preview-05-06",
        "google:gemini-2.0-flash-exp",
        "google:tunedModels/mine-1", "openai:gpt-4o-mini-tts",
        "google:gemini-1.5-flash-002", "azure:my-deployment",
        "vertex:my-endpoint", "openrouter:acme/new", "ollama:mine", "vllm:my/model",
        "openai-compatible:anything", "groq:new-model", "mistral:mistral-next",
    ],
)  # fmt: skip
def test_known_names_and_the_users_own_names_are_no_warning(name: str) -> None:
    """Releases.

    Fine-tuned models and deployments with custom names are not reported as misspelled.
    """
    provider, _, model = name.partition(":")
    assert dragoman.provider(provider).target(model).host.other_models == ()


@pytest.mark.parametrize("model", ["gpt-7-foo", "gpt-5-typo", "gpt-4-fast", "o9", "whatever"])
def test_nothing_is_left_out_for_an_unknown_model(model: str) -> None:
    """Whatever a similar name would refuse is sent, from this dialect and from another."""
    body = {"model": model, "messages": HI, **GENEROUS}
    sent = translate(body, source="openai-chat", target="openai")
    assert sent.losses == ()
    assert {**sent.body, "max_tokens": 50} == {**body, **sent.body, "max_tokens": 50}
    claude = {"model": "m", "max_tokens": 9, "messages": HI, "temperature": 0.3, "top_p": 0.9}
    sent = translate(claude, source="anthropic", target=f"openai:{model}")
    assert sent.losses == ()
    assert (sent.body["temperature"], sent.body["top_p"]) == (0.3, 0.9)


def test_nothing_is_left_out_for_an_unknown_claude() -> None:
    """A budget stays a budget, and sampling is sent, at the cost of thinking for an effort."""
    body = {"model": "claude-opus-9", "max_tokens": 5000, "messages": HI, "top_k": 5,
            "thinking": {"type": "enabled", "budget_tokens": 2000}}  # fmt: skip
    sent = translate(body, source="anthropic", target="anthropic")
    assert sent.body == body
    chat = {"model": "m", "messages": HI, "temperature": 0.3, "reasoning_effort": "high"}
    sent = translate(chat, source="openai-chat", target="anthropic:claude-opus-9")
    assert [loss.path for loss in sent.losses] == ["thinking"]
    assert sent.body["temperature"] == 0.3
    assert sent.body["output_config"] == {"effort": "high"}


@given(st.text(max_size=300))
def test_any_name_has_a_target(name: str) -> None:
    """No name is too strange, nor slow."""
    for provider in ("openai", "anthropic", "google"):
        target = dragoman.provider(provider).target(name)
        assert isinstance(dragoman.dialect(target.dialect).check({}, target=target), list)


def test_a_provider_that_was_changed_has_other_targets() -> None:
    """Cached targets are used only for the provider value that they were made from."""
    place = dragoman.provider("openai")
    assert place.target("gpt-7-foo") is place.target("gpt-7-foo")
    assert place.replace(names=()).target("gpt-7-foo").host.other_models == ()
    assert place.replace(families=()).target("gpt-5").thinking.form == "any"
    assert place.target("gpt-5").thinking.form == "effort"
    assert place.target("gpt-5" * 50).model == "gpt-5" * 50


# --- what users say


def test_users_override_facts_in_the_program() -> None:
    """A row of one's own counts most, and makes the name known."""
    override_facts(
        {"openai:gpt-7*": {"context_window": 2_000_000, "thinking.efforts": ["low", "high"]}}
    )
    target = dragoman.provider("openai").target("gpt-7-foo")
    assert target.thinking.efforts == ("low", "high")
    assert target.host.other_models == ()
    assert context_window("openai:gpt-7-foo") == 2_000_000
    assert context_window("chatgpt:gpt-7-foo-2026-12-01") == 2_000_000
    assert context_window("azure:gpt-7-foo") != 2_000_000
    override_facts({"openai:gpt-7*": None})
    assert dragoman.provider("openai").target("gpt-7-foo").host.other_models


@pytest.mark.parametrize("step", [1, -1])
def test_an_exact_name_counts_more_than_a_pattern(step: int) -> None:
    """As in `Prices`: the exact one, whichever was given first, then the first that fits."""
    rows: list[tuple[str, dict[str, Any]]] = [
        ("openai:gpt-7-foo", {"context_window": 1}),
        ("openai:gpt-7*", {"context_window": 2, "max_output_tokens": 3}),
    ]
    override_facts(dict(rows[::step]))
    assert context_window("openai:gpt-7-foo") == 1
    assert context_window("openai:gpt-7-bar") == 2
    assert max_output_tokens("openai:gpt-7-foo") == 3


def test_a_bare_name_counts_wherever_it_is_served() -> None:
    """A key without a provider is about the model."""
    override_facts({"acme-large": {"context_window": 7, "tools.parses_arguments": True}})
    assert context_window("vllm:acme-large") == context_window("acme-large") == 7
    for name in ("vllm", "openai", "openrouter"):
        assert dragoman.provider(name).target("acme-large").tools.parses_arguments


def test_stars_are_quick_and_alone_special() -> None:
    """However many there are, and whatever else is in a name."""
    key = "a*" * 40 + "b[?]"
    override_facts({key: {"context_window": 5}})
    try:
        assert context_window("a" * 200) is None
        assert context_window("a" * 50 + "b[?]") == 5
        assert dragoman.provider("openai").target("a" * 200).model == "a" * 200
        assert dragoman.provider("openai").target("a" * 50 + "b[?]").host.other_models == ()
    finally:
        override_facts({key: None})


_TOML = """
["openai:gpt-7*"]
context_window = 2_000_000
thinking.efforts = ["low", "high"]
sampling.refused = []
source = "release notes"
date = 2026-12-01
"""
_JSON = {
    "openai:gpt-7*": {
        "context_window": 2_000_000,
        "thinking": {"efforts": ["low", "high"]},
        "source": "release notes",
        "date": "2026-12-01",
    }
}


@pytest.mark.parametrize(
    ("name", "text"), [("facts.toml", _TOML), ("facts", _TOML), ("f.json", json.dumps(_JSON))]
)
def test_users_override_facts_in_a_file(
    name: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is read when it is named, and again when it has changed."""
    file = tmp_path / name
    file.write_text(text)
    monkeypatch.setenv(VARIABLE, str(file))
    assert dragoman.provider("openai").target("gpt-7-foo").thinking.efforts == (
        "low",
        "high",
    )
    assert context_window("openai:gpt-7-foo") == 2_000_000
    (fact,) = [each for each in facts("openai:gpt-7-x") if each.name == "context_window"]
    assert (fact.source, fact.date) == ("release notes", "2026-12-01")
    file.write_text("{}" if name.endswith("json") else "")
    assert context_window("openai:gpt-7-foo") is None


@pytest.mark.parametrize(
    "text",
    [
        "x = 5", "[[", '["gpt-5"]\nno_such = 1', '["gpt-5"]\nthinking.efforts = 5',
        '["gpt-5"]\nthinking.form = "who knows"', '["gpt-5"]\nthinking = 5',
        '["gpt-5"]\ncontext_window = "many"', '["gpt-5"]\ncontext_window = 0',
        '["gpt-5"]\ncontext_window = true', '["gpt-5"]\nmodel = "x"', '["gpt-5"]\nsource = 5',
        '["gpt-5"]\nthinking.no_such = 5', '["gpt-5"]\nis_strict = "yes"', "\x00",
        "x = " + "[" * 9999,
    ],
)  # fmt: skip
def test_a_malformed_file_is_a_clear_error(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names the variable, and quotes nothing."""
    file = tmp_path / "facts.toml"
    file.write_text(text)
    monkeypatch.setenv(VARIABLE, str(file))
    with pytest.raises(ConfigError, match=VARIABLE) as raised:
        dragoman.provider("openai")
    assert "who knows" not in str(raised.value)
    with pytest.raises(ConfigError):
        context_window("gpt-5")


@pytest.mark.parametrize("path", ["nowhere.toml", "\x00", "."])
def test_a_missing_facts_file_raises(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing override file is an error, rather than ignored."""
    try:
        monkeypatch.setenv(VARIABLE, path)
    except ValueError:
        return  # no environment holds it
    with pytest.raises(ConfigError, match=VARIABLE):
        dragoman.provider("openai")


@given(st.dictionaries(st.sampled_from(["gpt-5", "openai:gpt-7*"]), st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(
        st.sampled_from(["context_window", "thinking", "efforts", "thinking.form", "source"]),
        inner, max_size=2)), max_size=2))  # fmt: skip
def test_overrides_are_accepted_or_rejected_as_a_whole(given_facts: dict[str, Any]) -> None:
    """Invalid overrides raise our own error and change nothing."""
    try:
        override_facts(given_facts)
    except DragomanError:
        pass
    finally:
        dragoman.provider("openai").target("gpt-7-foo")
        override_facts({"gpt-5": None, "openai:gpt-7*": None})


def test_rows_are_checked_when_they_are_made() -> None:
    """A size is a number of tokens, and a pattern can be compiled."""
    rows: list[Any] = [("(",), ("a", 0), ("a", True), ("a", "5")]
    for wrong in rows:
        with pytest.raises(InvalidInputError):
            Size(*wrong)


@pytest.mark.parametrize("about", ["openai:gpt-5", "anthropic:claude-sonnet-4-5", "gemini-2.5-pro"])
def test_a_fact_names_its_model_dialect_and_source(about: str) -> None:
    """A context size belongs to the model in every dialect; a flag belongs to one dialect."""
    found = facts(about)
    sizes = [fact for fact in found if "." not in fact.name]
    assert sizes[0].name == "context_window"
    assert {fact.name for fact in sizes} <= {"context_window", "max_output_tokens"}
    assert len(sizes) < len(found)
    for fact in found:
        assert fact.models.partition(":")[2] == about.rpartition(":")[2]
        assert (fact.dialect is None) is (fact in sizes)
        assert fact.source
        assert re.fullmatch(r"20\d\d-\d\d(-\d\d)?", fact.date)
    for fact in sizes:
        assert type(fact.value) is int
        assert fact.value > 1000


@given(st.text("ab*-?[", max_size=9), st.text("ab-?[*", max_size=12))
def test_wildcards_match_as_those_of_fnmatch(pattern: str, name: str) -> None:
    """For any name, with any number of them; only `*` is one."""
    escaped = pattern.replace("[", "[[]").replace("?", "[?]")
    assert is_like(pattern, name) == fnmatchcase(name, escaped)


def test_many_wildcards_take_linear_time() -> None:
    """Nothing goes back into what a wildcard matched; a pattern that did would take hours."""
    assert not is_like("*a" * 40 + "b", "a" * 120)
    assert not re.match(pattern_of("*a" * 40 + "b") + r"\Z", "a" * 120)
