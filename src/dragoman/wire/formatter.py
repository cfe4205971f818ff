"""`Formatter`: encodes and decodes single pieces of requests and responses.

Thin views over a dialect's codec, for programs that assemble requests themselves:

>>> from dragoman.wire.dialect import dialect
>>> formatter = Formatter(dialect("anthropic"))
>>> formatter.format_message(Message.user("Hi"))
{'role': 'user', 'content': 'Hi'}

Messages may also be dicts, in any shape that `Messages.from_any` accepts.
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
    """Encodes and decodes pieces of requests and responses in one dialect."""

    def __init__(self, dialect: Dialect, target: Target | None = None) -> None:
        self._dialect = dialect
        self._target = target or dialect.target

    # --- from the model to the wire

    def format_message(self, message: Message | Mapping[str, Any]) -> dict[str, Any]:
        """Encode one message; raises if it is none, or several, in this dialect."""
        # A single message is no conversation: the rules about neighbouring messages don't apply.
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
            msg = f"this is not exactly one message in {self._dialect.name}; use format_messages"
            raise InvalidInputError(msg)
        return found[0]

    def format_messages(self, messages: Iterable[AnyMessage]) -> list[dict[str, Any]]:
        """Encode messages, without instructions that the dialect has in a separate field."""
        return self._messages(self._body(messages))

    def system_instruction(self, messages: Iterable[AnyMessage]) -> Any:
        """The instructions, if the dialect has a separate field for them; None otherwise.

        Several plain texts are joined by newlines; texts with cache hints or other fields stay
        separate.
        """
        field = self._dialect.system_field
        return None if field is None else _joined(self._body(messages).get(field))

    def format_tools(self, tools: Iterable[AnyTool]) -> list[dict[str, Any]]:
        """The tools as they appear in a request."""
        request = Request(messages=(Message.user(""),), tools=tuple(tools))
        found = self._dialect.encode_request(request, self._target).body.get("tools")
        return found if isinstance(found, list) else []

    def _messages(self, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        found = body.get(self._dialect.messages_field)
        if isinstance(found, str):  # Responses: a single user text
            return [{"role": "user", "content": found}]
        return found if isinstance(found, list) else []

    def _body(self, messages: Iterable[AnyMessage]) -> Mapping[str, Any]:
        # The list may be incomplete: the caller may append messages.
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
        """The tool calls in a response."""
        return self._dialect.decode_response(response).tool_calls

    def content(self, response: Body) -> str:
        """The complete text of a response."""
        return self._dialect.decode_response(response).text

    def finish_reason(self, response: Body) -> str:
        """The canonical finish reason; `tool_calls` for any complete turn with tool calls (W11)."""
        found = self._dialect.decode_response(response)
        if found.tool_calls and not (found.finish and found.finish.is_cut_off):
            return "tool_calls"
        return found.finish.value if found.finish else "stop"


def _read(messages: Iterable[AnyMessage]) -> tuple[Message, ...]:
    return tuple(Messages.from_any(list(messages)))


def _joined(system: Any) -> Any:
    """Join blocks that are all plain text; return anything else unchanged."""
    if not isinstance(system, list) or not system:
        return system
    texts = [block["text"] for block in system if _is_plain(block)]
    return "\n".join(texts) if len(texts) == len(system) else system


def _is_plain(block: Any) -> bool:
    return isinstance(block, dict) and block.keys() == {"type", "text"} and block["type"] == "text"
