"""The formatter's contract: the pieces of a request and of a response, one at a time.

Thin views over a dialect's codec, for programs that put requests together themselves:

>>> from dragoman.wire.dialect import dialect
>>> formatter = Formatter(dialect("anthropic"))
>>> formatter.format_message(Message.user("Hi"))
{'role': 'user', 'content': 'Hi'}

Messages may be dicts as well, in any shape that `Messages.from_any` reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dragoman.errors import InvalidInputError
from dragoman.model.collection import Messages
from dragoman.model.messages import Message
from dragoman.model.requests import AnyTool, Request
from dragoman.model.tools import ToolCall
from dragoman.wire.dialect import Body, Dialect
from dragoman.wire.target import Target

AnyMessage = Message | Mapping[str, Any]


class Formatter:
    """The pieces of requests and responses in one dialect."""

    def __init__(self, dialect: Dialect, target: Target | None = None) -> None:
        self._dialect = dialect
        self._target = target or dialect.target

    # --- from the model to the wire

    def format_message(self, message: Message | Mapping[str, Any]) -> dict[str, Any]:
        """One message; raises where the dialect makes none of it, or several."""
        # One message is no conversation: nothing is asked of what stands around it.
        loose = self._target.with_flags(
            {
                "turns.pairs_results": False,
                "turns.needs_message": False,
                "turns.starts_with_user": False,
                "turns.prefill": "free",
            }
        )
        found = self._messages(
            self._dialect.encode_request(Request(messages=_read([message])), loose).body
        )
        if len(found) != 1:
            msg = f"the message is not one message in {self._dialect.name}; use format_messages"
            raise InvalidInputError(msg)
        return found[0]

    def format_messages(self, messages: Iterable[AnyMessage]) -> list[dict[str, Any]]:
        """The messages; instructions are left out where they have a place of their own."""
        return self._messages(self._body(messages))

    def system_instruction(self, messages: Iterable[AnyMessage]) -> Any:
        """What the wire has outside the list of messages; None where there is nothing.

        Several plain texts are one, joined by newlines; with cache hints or other fields they
        stay apart.
        """
        field = self._dialect.system_field
        return None if field is None else _joined(self._body(messages).get(field))

    def format_tools(self, tools: Iterable[AnyTool]) -> list[dict[str, Any]]:
        """The tools as they stand in a request."""
        request = Request(messages=(Message.user(""),), tools=tuple(tools))
        found = self._dialect.encode_request(request, self._target).body.get("tools")
        return found if isinstance(found, list) else []

    def _messages(self, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        found = body.get(self._dialect.messages_field)
        if isinstance(found, str):  # a user's text alone, as Responses has it
            return [{"role": "user", "content": found}]
        return found if isinstance(found, list) else []

    def _body(self, messages: Iterable[AnyMessage]) -> Mapping[str, Any]:
        # They need not be all: whoever asks for them may have something to say at the end.
        open_ended = self._target.with_flags({"turns.prefill": "free"})
        return self._dialect.encode_request(Request(messages=_read(messages)), open_ended).body

    # --- from the wire to the model

    def usage(self, response: Body) -> dict[str, int]:
        """The token counts, as `{prompt_tokens, completion_tokens, total_tokens}`."""
        found = self._dialect.decode_response(response).usage
        return {
            "prompt_tokens": found.total_input if found else 0,
            "completion_tokens": found.total_output if found else 0,
            "total_tokens": found.total if found else 0,
        }

    def tool_calls(self, response: Body) -> tuple[ToolCall, ...]:
        """The tools that the model calls."""
        return self._dialect.decode_response(response).tool_calls

    def content(self, response: Body) -> str:
        """The text of the answer, all of it."""
        return self._dialect.decode_response(response).text

    def finish_reason(self, response: Body) -> str:
        """Why it ended, in our words; a turn that calls tools is a tool turn (W11)."""
        found = self._dialect.decode_response(response)
        if found.tool_calls and not (found.finish and found.finish.is_cut_off):
            return "tool_calls"
        return found.finish.value if found.finish else "stop"


def _read(messages: Iterable[AnyMessage]) -> tuple[Message, ...]:
    return tuple(Messages.from_any(list(messages)))


def _joined(system: Any) -> Any:
    """Blocks that are nothing but text as one text; all else as it is."""
    if not isinstance(system, list) or not system:
        return system
    texts = [block["text"] for block in system if _is_plain(block)]
    return "\n".join(texts) if len(texts) == len(system) else system


def _is_plain(block: Any) -> bool:
    return isinstance(block, dict) and block.keys() == {"type", "text"} and block["type"] == "text"
