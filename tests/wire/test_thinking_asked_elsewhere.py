"""Thinking that was asked for in one dialect is asked for in all others."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Encoded, Request, check, dialect, translate
from dragoman.model.messages import Message
from dragoman.model.requests import Sampling, ThinkingConfig
from dragoman.providers.translation import target_of

_TALK = {"messages": [{"role": "user", "content": "Hi"}]}
_CONTENTS = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}


def _gemini(**config: Any) -> dict[str, Any]:
    return {**_CONTENTS, "generationConfig": {"thinkingConfig": config}}


EFFORTS: list[tuple[str, dict[str, Any]]] = [
    ("openai-chat", {**_TALK, "reasoning_effort": "high"}),
    ("openai-chat", {**_TALK, "reasoning": {"effort": "high"}}),
    ("openai-responses", {"input": "Hi", "reasoning": {"effort": "high"}}),
    ("gemini", _gemini(thinkingLevel="HIGH")),
    ("ollama", {**_TALK, "think": "high"}),
    ("ollama", {**_TALK, "think": True}),
]
SHOWN: list[tuple[str, dict[str, Any]]] = [
    ("openai-responses", {"input": "Hi", "reasoning": {"summary": "auto"}}),
    ("openai-responses", {"input": "Hi", "reasoning": {"effort": "high", "summary": "detailed"}}),
    ("openai-chat", {**_TALK, "reasoning": {"exclude": False}}),
    ("openai-chat", {**_TALK, "include_reasoning": True}),
    ("gemini", _gemini(includeThoughts=True)),
]
ADAPTIVE = ("claude-opus-4-6", "claude-sonnet-4-6", "claude-opus-4-7", "claude-opus-4-8",
            "claude-sonnet-5")  # fmt: skip


def _translated(source: str, body: dict[str, Any], target: str) -> Encoded:
    named = body if source == "gemini" else {"model": "m", **body}
    return translate(named, source=source, target=target)


def _errors(body: Any, target: str) -> list[Any]:
    found = check(body, target=target_of(target))
    return [each for each in found if each.severity == "error"]


@pytest.mark.parametrize("model", ADAPTIVE)
@pytest.mark.parametrize(("source", "body"), [*EFFORTS, *SHOWN])
def test_claude_thinks_when_another_dialect_asks(
    source: str, body: dict[str, Any], model: str
) -> None:
    """An effort or a wish to see thinking switches adaptive thinking on, which is reported."""
    target = f"anthropic:{model}"
    made = _translated(source, body, target)
    assert made.body["thinking"]["type"] == "adaptive"
    is_shown = (source, body) in SHOWN
    assert made.body["thinking"].get("display") == ("summarized" if is_shown else None)
    is_told = body.get("think") is not True  # Ollama's own switch is just another word for it
    assert [repair.path for repair in made.repairs if repair.path == "thinking"] == (
        ["thinking"] if is_told else []
    )
    assert not _errors(made.body, target)


@pytest.mark.parametrize("model", ADAPTIVE)
def test_a_request_of_our_own_is_no_different(model: str) -> None:
    """`Request(thinking=…)` with an effort makes Claude think; `enabled=False` keeps it from it."""
    target = target_of(f"anthropic:{model}")

    def made(**config: Any) -> dict[str, Any]:
        request = Request(
            model=model, messages=(Message.user("Hi"),), thinking=ThinkingConfig(**config)
        )
        return dialect("anthropic").encode_request(request, target).body

    assert made(effort="low")["thinking"] == {"type": "adaptive"}
    assert made(visible=True)["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert "thinking" not in made(visible=False)
    assert made(effort="low", enabled=False)["thinking"]["type"] != "adaptive"
    assert made(effort="none")["thinking"]["type"] != "adaptive"


def test_a_model_that_always_thinks_is_only_asked_to_show_it() -> None:
    """Claude Opus 5.5 needs no switch."""
    chat = {"model": "m", **_TALK, "reasoning_effort": "high"}
    made = translate(chat, source="openai-chat", target="anthropic:claude-opus-5-5")
    assert "thinking" not in made.body
    made = translate({**chat, "include_reasoning": True}, source="openai-chat",
                     target="anthropic:claude-opus-5-5")  # fmt: skip
    assert made.body["thinking"] == {"type": "adaptive", "display": "summarized"}


@pytest.mark.parametrize("model", ADAPTIVE)
def test_anthropic_s_own_effort_is_no_switch(model: str) -> None:
    """There it says how long an answer may be, too; edits beside it don't change that."""
    body = {**_TALK, "model": model, "max_tokens": 9, "output_config": {"effort": "low"}}
    target = target_of(f"anthropic:{model}")
    request = dialect("anthropic").decode_request(body)
    assert dialect("anthropic").encode_request(request, target).body == body
    edited = request.replace(messages=(Message.user("Hello"),))
    again = dialect("anthropic").encode_request(edited, target).body
    assert "thinking" not in again
    assert again["output_config"] == {"effort": "low"}


@pytest.mark.parametrize(
    "sampling",
    [{"temperature": 0.2}, {"top_p": 0.5}, {"top_k": 5}],
    ids=lambda each: next(iter(each)),
)
def test_sampling_that_thinking_forbids_wins_over_an_effort(sampling: dict[str, Any]) -> None:
    """What was asked for explicitly is sent; that the model won't think is reported."""
    request = Request(
        model="claude-opus-4-6",
        messages=(Message.user("Hi"),),
        thinking=ThinkingConfig(effort="high"),
        sampling=Sampling(**sampling),
    )
    target = target_of("anthropic:claude-opus-4-6")
    made = dialect("anthropic").encode_request(request, target)
    assert "thinking" not in made.body
    assert made.body["output_config"] == {"effort": "high"}
    assert sampling.items() <= made.body.items()
    assert [loss.path for loss in made.losses] == ["thinking"]
    assert not check(made.body, target=target)


@pytest.mark.parametrize(
    ("sampling", "rest"),
    [({"temperature": 0.2}, {}), ({"temperature": 1}, {"temperature": 1}), ({"top_k": 5}, {}),
     ({"top_p": 0.5}, {}), ({"top_p": 0.97}, {"top_p": 0.97})],
)  # fmt: skip
def test_adaptive_thinking_takes_as_little_sampling_as_a_budget(
    sampling: dict[str, Any], rest: dict[str, Any]
) -> None:
    """The API refuses a temperature "when thinking is enabled or in adaptive mode" (W59)."""
    target = target_of("anthropic:claude-opus-4-6")
    request = Request(
        model="claude-opus-4-6",
        messages=(Message.user("Hi"),),
        thinking=ThinkingConfig(enabled=True, effort="low"),
        sampling=Sampling(**sampling),
    )
    asked = {**_TALK, "max_tokens": 9, "thinking": {"type": "adaptive"}, **sampling}
    assert bool(_errors(asked, "anthropic:claude-opus-4-6")) is not bool(rest)
    made = dialect("anthropic").encode_request(request, target)
    assert {key: made.body[key] for key in sampling if key in made.body} == rest
    assert made.body["thinking"] == {"type": "adaptive"}
    assert [loss.path for loss in made.losses] == (
        [] if rest else [f"sampling.{next(iter(sampling))}"]
    )


@pytest.mark.parametrize(("source", "body"), SHOWN)
def test_gemini_is_asked_to_show_thinking(source: str, body: dict[str, Any]) -> None:
    """A summary, as Responses asks for it, is what Gemini calls `includeThoughts`."""
    made = _translated(source, body, "google:gemini-2.5-pro")
    assert made.body["generationConfig"]["thinkingConfig"]["includeThoughts"] is True
    assert not _errors(made.body, "google:gemini-2.5-pro")


@pytest.mark.parametrize(("source", "body"), SHOWN)
def test_openrouter_is_asked_to_show_thinking(source: str, body: dict[str, Any]) -> None:
    """It shows thinking that is not excluded, once something else asks for thinking."""
    made = _translated(source, body, "openrouter:openai/gpt-5")
    found = made.body["reasoning"]
    assert found["exclude"] is False
    if source != "openai-chat":
        assert found.get("effort") or found.get("enabled") is True
    assert not _errors(made.body, "openrouter:openai/gpt-5")


@pytest.mark.parametrize(("source", "body"), SHOWN)
def test_ollama_shows_thinking_anyway(source: str, body: dict[str, Any]) -> None:
    """It has no setting for it, and needs none: nothing is lost."""
    made = _translated(source, body, "ollama:qwen3")
    is_detailed = body.get("reasoning", {}).get("summary") == "detailed"
    assert [loss.path for loss in made.losses] == (["thinking.summary"] if is_detailed else [])


@pytest.mark.parametrize("target", ["google:gemini-2.5-pro", "anthropic:claude-opus-4-6",
                                    "openrouter:openai/gpt-5"])  # fmt: skip
def test_a_summary_s_style_is_lost_where_there_is_only_on_and_off(target: str) -> None:
    """`auto` says no more than "shown"; `detailed` does, and that is reported."""

    def lost(summary: str) -> list[str]:
        body = {"model": "m", "input": "Hi", "reasoning": {"effort": "high", "summary": summary}}
        made = translate(body, source="openai-responses", target=target)
        return [loss.path for loss in made.losses if loss.path.endswith(("summary", "visible"))]

    assert lost("auto") == []
    assert lost("detailed") == ["thinking.summary"]


def test_a_summary_of_none_hides_thinking() -> None:
    """Codex's word for no summary."""
    body = {"model": "m", "input": "Hi", "reasoning": {"effort": "high", "summary": "none"}}
    made = translate(body, source="openai-responses", target="anthropic:claude-opus-4-8")
    assert made.body["thinking"] == {"type": "adaptive", "display": "omitted"}
