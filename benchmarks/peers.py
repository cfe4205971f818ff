"""The peers' ways from an OpenAI Chat body to an Anthropic or a Gemini one, bytes to bytes.

Each uses orjson for its bytes, whatever the library itself would take: only the translation is
theirs. What needs no request to work on (clients, configurations) is made before the clock runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

Translate = Callable[[bytes], bytes]

_CLAUDE, _GEMINI = "claude-sonnet-4-5", "gemini-2.5-flash"


def to_anthropic() -> dict[str, Translate]:
    """The peers that write Anthropic's bodies."""
    return {
        "litellm, AnthropicConfig.transform_request": _litellm_anthropic(),
        "litellm, anthropic_messages_pt (messages only)": _litellm_messages(),
        "llm-rosetta, convert": _rosetta("anthropic"),
        "langchain, ChatAnthropic's payload": _langchain_anthropic(),
    }


def to_gemini() -> dict[str, Translate]:
    """The peers that write Gemini's bodies."""
    return {
        "litellm, gemini_convert_messages_with_history (messages)": _litellm_gemini(),
        "llm-rosetta, convert": _rosetta("google"),
        "langchain, ChatGoogleGenerativeAI's request": _langchain_gemini(),
    }


def _litellm_anthropic() -> Translate:
    _stay_local()
    import orjson
    from litellm.llms.anthropic.chat.transformation import AnthropicConfig

    config = AnthropicConfig()

    def translate(body: bytes) -> bytes:
        wire = orjson.loads(body)
        messages = wire.pop("messages")
        params = config.map_openai_params(wire, {}, _CLAUDE, drop_params=False)
        written: bytes = orjson.dumps(config.transform_request(_CLAUDE, messages, params, {}, {}))
        return written

    return translate


def _litellm_messages() -> Translate:
    _stay_local()
    import orjson
    from litellm.litellm_core_utils.prompt_templates.factory import anthropic_messages_pt

    def translate(body: bytes) -> bytes:
        messages = orjson.loads(body)["messages"]
        written: bytes = orjson.dumps(
            {"messages": anthropic_messages_pt(messages, model=_CLAUDE, llm_provider="anthropic")}
        )
        return written

    return translate


def _litellm_gemini() -> Translate:
    _stay_local()
    import orjson
    from litellm.llms.vertex_ai.gemini.transformation import gemini_convert_messages_with_history

    def translate(body: bytes) -> bytes:
        messages = orjson.loads(body)["messages"]
        written: bytes = orjson.dumps(
            {"contents": gemini_convert_messages_with_history(messages, model=_GEMINI)}
        )
        return written

    return translate


def _rosetta(target: str) -> Translate:
    import orjson
    from llm_rosetta import convert

    return lambda body: orjson.dumps(convert(orjson.loads(body), target, "openai_chat"))


def _langchain_anthropic() -> Translate:
    import orjson
    from langchain_anthropic import ChatAnthropic
    from langchain_core.messages import convert_to_messages

    model = ChatAnthropic(model_name=_CLAUDE, api_key="none", max_tokens=1000)

    def translate(body: bytes) -> bytes:
        wire = orjson.loads(body)
        tools = [_anthropic_tool(tool["function"]) for tool in wire["tools"]]
        messages = convert_to_messages(wire["messages"])
        written: bytes = orjson.dumps(model._get_request_payload(messages, tools=tools))
        return written

    return translate


def _langchain_gemini() -> Translate:
    import orjson
    from langchain_core.messages import convert_to_messages
    from langchain_google_genai import ChatGoogleGenerativeAI

    model = ChatGoogleGenerativeAI(model=_GEMINI, api_key="none", max_output_tokens=1000)

    def translate(body: bytes) -> bytes:
        wire = orjson.loads(body)
        request = model._prepare_request(convert_to_messages(wire["messages"]), tools=wire["tools"])
        written: bytes = orjson.dumps(request, default=_plain)
        return written

    return translate


def _anthropic_tool(function: dict[str, Any]) -> dict[str, Any]:
    return {"name": function["name"], "input_schema": function["parameters"]}


def _plain(value: Any) -> Any:
    """The google-genai type's own dictionary, as that SDK sends it."""
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


def _stay_local() -> None:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else importing it asks the network
