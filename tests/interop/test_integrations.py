"""What LangChain's integrations and Mistral's library make of answers and of our messages.

They are in the extra `peers`; `make test-all` has them. No network: their own parsers read
answers, and their own formatters write what would be sent.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from dragoman import Messages, Thinking, ToolCall
from dragoman.interop import from_langchain, from_openai, to_langchain
from tests.interop.conversations import ALL, THINKING, TOOLS
from tests.interop.test_sdks import CLAUDES, COMPLETION, ITEMS


def module(name: str) -> Any:
    """A library of the extra, or the test is skipped."""
    return pytest.importorskip(name, reason=f"{name} is not installed (extra: peers)")


class TestAnthropic:
    """langchain-anthropic."""

    def test_what_it_makes_of_an_answer(self) -> None:
        """Comes back equal, and says what the answer said."""
        chat = module("langchain_anthropic").ChatAnthropic(model="claude-opus-4-5", api_key="x")
        (generation,) = chat._format_output(CLAUDES).generations
        answer = generation.message
        (message,) = from_langchain(answer)
        assert message.parts[0] == Thinking("hm", signature="c2ln")
        assert message.tool_calls == (ToolCall("toolu_1", "f", input={"a": None}),)
        assert to_langchain(message, strict=True).messages == [answer]

    def test_what_it_sends_of_ours(self) -> None:
        """Signed thinking and calls, as Anthropic wants them."""
        chat = module("langchain_anthropic").ChatAnthropic(model="claude-opus-4-5", api_key="x")
        sent = chat._get_request_payload(to_langchain(THINKING).messages)
        blocks = sent["messages"][1]["content"]
        assert blocks[0] == {"type": "thinking", "thinking": "Let me see.", "signature": "c2lnbmVk"}
        assert blocks[1] == {"type": "redacted_thinking", "data": "c2VhbGVk"}
        assert blocks[-1]["type"] == "tool_use"
        assert blocks[-1]["input"] == {"step": 1}


class TestOpenAI:
    """langchain-openai."""

    def test_what_it_makes_of_an_answer(self) -> None:
        """Of both APIs: comes back equal, and says what the answer said."""
        chat = module("langchain_openai").ChatOpenAI(model="gpt-5", api_key="x")
        base = import_module("langchain_openai.chat_models.base")
        results = [
            chat._create_chat_result(COMPLETION),
            base._construct_lc_result_from_responses_api(ITEMS),
            base._construct_lc_result_from_responses_api(ITEMS, output_version="v0"),
            base._construct_lc_result_from_responses_api(ITEMS, output_version="v1"),
        ]
        for result in results:
            answer = result.generations[0].message
            (message,) = from_langchain(answer)
            assert [call.id for call in message.tool_calls] == ["call_1"]
            assert to_langchain(message, strict=True).messages == [answer]

    @pytest.mark.parametrize("messages", [ALL["plain"], TOOLS], ids=["plain", "tools"])
    def test_what_it_sends_of_ours(self, messages: Messages) -> None:
        """The conversation that ours is."""
        chat = module("langchain_openai").ChatOpenAI(
            model="gpt-5", api_key="x", use_responses_api=False
        )
        again = from_openai(chat._get_request_payload(to_langchain(messages).messages)["messages"])
        assert [m.text for m in again] == [m.text for m in messages.split_results()]
        assert [c for m in again for c in m.tool_calls] == [
            c for m in messages for c in m.tool_calls
        ]


class TestMistral:
    """mistralai."""

    def test_its_objects(self) -> None:
        """Thinking, calls and results."""
        module("mistralai")
        models = import_module("mistralai.client.models")
        answer = models.AssistantMessage(
            content=[
                models.ThinkChunk(thinking=[models.TextChunk(text="hm")]),
                models.TextChunk(text="Hi"),
            ],
            tool_calls=[
                models.ToolCall(
                    id="c1", function=models.FunctionCall(name="f", arguments='{"a":  1}')
                )
            ],
        )
        result = models.ToolMessage(content="x", tool_call_id="c1", name="f")
        talk = from_openai([models.UserMessage(content="Hi"), answer, result])
        assert [m.role.value for m in talk] == ["user", "assistant", "tool"]
        assert talk[1].thinking == "hm"
        assert talk[1].tool_calls[0].raw == '{"a":  1}'
