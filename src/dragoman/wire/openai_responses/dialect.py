"""The `openai-responses` dialect: its description, default target and sealed state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from dragoman.model.parts import Origin, Thinking
from dragoman.model.requests import Request
from dragoman.wire.description import Description, MessageForm, SdkModule, Wire
from dragoman.wire.flags import (
    FieldFlags,
    HostFlags,
    IdFlags,
    MediaFlags,
    SamplingFlags,
    StateFlags,
    ToolFlags,
    TurnFlags,
)
from dragoman.wire.fronts import StateFields
from dragoman.wire.openai_responses.tools_provider import FORMS
from dragoman.wire.openai_responses.tools_provider_calls import CALLS
from dragoman.wire.openai_settings import IMAGE_DETAILS
from dragoman.wire.target import Target

NAME: Final = "openai-responses"
ORIGIN: Final = Origin(dialect=NAME)


def _is_stored_prompt(wire: Wire) -> bool:
    """Whether a body has only a stored prompt."""
    return isinstance(wire.get("prompt"), Mapping) and "messages" not in wire


def _is_response(_kind: str, wire: Wire) -> bool:
    return isinstance(wire.get("output"), list) and "type" not in wire


DESCRIPTION = Description(
    name=NAME,
    about="OpenAI's Responses API: a conversation is a flat list of items"
          " (messages, reasoning, calls)",
    messages_field="input",
    system_field="instructions",
    answer_field="output",
    order=30,
    paths=("/responses",),
    fields=frozenset({"input", "previous_response_id", "max_output_tokens", "output"}),
    is_likely=_is_stored_prompt,
    response_fields=frozenset({"output"}),
    writes_settings=True,
    provider_tools=FORMS,
    tool_offers="dragoman.wire.openai_responses.tools_offers",
    carried="dragoman.wire.openai_responses.carried",
    provider_calls=CALLS,
    messages=MessageForm(
        roles=frozenset({"system", "developer", "user", "assistant"}),
        item_types=frozenset({"function_call", "function_call_output", "reasoning",
                              "item_reference", "custom_tool_call", "custom_tool_call_output",
                              "web_search_call", "file_search_call", "tool_search_call",
                              "tool_search_output", "code_interpreter_call",
                              "image_generation_call", "computer_call", "computer_call_output",
                              "mcp_call", "mcp_list_tools", "mcp_approval_request",
                              "mcp_approval_response", "local_shell_call",
                              "local_shell_call_output", "shell_call", "shell_call_output",
                              "apply_patch_call", "apply_patch_call_output", "compaction"}),
        message_types=frozenset({"message"}),
        item_part_types=frozenset({"input_text", "output_text", "input_image", "input_file"}),
    ),
    sdk_modules=(SdkModule("openai.types.responses", "exclude_unset", _is_response),),
)  # fmt: skip


# --- the default target: OpenAI's own API

TARGET = Target(
    dialect=NAME,
    provider="openai",
    ids=IdFlags(max_length=64),  # W22
    tools=ToolFlags(limits_argument_names=True),  # W39
    turns=TurnFlags(answers_any_call=True, refuses_empty_answers=False),  # W29
    sampling=SamplingFlags(min_output_tokens=16),
    media=MediaFlags(kinds=("image", "file"), details=IMAGE_DETAILS),
    state=StateFlags(
        verifies_items=True,  # W21, W23, W24, W25, W28
        fields=("previous_response_id", "conversation", "prompt", "store"),
    ),
    fields=FieldFlags(needs_model=True),
    host=HostFlags(resumes_answers=True),
)


# --- state of other providers in this dialect: reasoning items with encrypted content


def _as_item(part: Thinking, number: int, message_id: Callable[[], str]) -> Thinking:
    """Make each thinking part a separate item, since an item has one encrypted content."""
    return part.replace(item_id=f"rs_{message_id().removeprefix('msg_')}_{number}")


def _as_summary(part: Thinking, number: int, message_id: Callable[[], str]) -> Thinking:
    """Show thinking where a client that asked for a summary looks for it."""
    return _as_item(part, number, message_id).replace(form="summary")


CLIENT_FIELDS = ("client_metadata",)
"""Fields in which clients (Codex) tell OpenAI about themselves; no other host reads them."""

STATE_FIELDS = StateFields(ORIGIN, thoughts="data", complete_thinking=_as_item)
_SUMMARY_FIELDS = STATE_FIELDS._replace(complete_thinking=_as_summary)


def fields_for(request: Request) -> StateFields:
    """Where a client keeps thinking and state: `reasoning.summary` asks for readable summaries."""
    thinking = request.thinking
    asked = None if thinking is None else thinking.summary
    return STATE_FIELDS if asked in {None, "none"} else _SUMMARY_FIELDS
