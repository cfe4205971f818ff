"""Checks that an edit changed the body, and nothing else changed, by decoding it again.

Decoding is lossless (as other tests show), so if a body decodes to the edited value, the edit is
the only change; unsupported edits must be reported with their path.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import groupby, islice
from typing import Any, Literal
from zlib import crc32

from msgspec import UNSET

from dragoman.model.frozen import thaw
from dragoman.model.media import Media
from dragoman.model.messages import Message
from dragoman.model.parts import (
    Citation,
    Part,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
    Thinking,
)
from dragoman.model.requests import Output, Request, Sampling, State, ThinkingConfig
from dragoman.model.responses import Choice, Response
from dragoman.model.roles import Role
from dragoman.model.tools import ServerTool, ToolCall, ToolChoice, ToolDefinition, ToolResult
from dragoman.model.usage import FinishReason, Usage
from dragoman.model.value import Value
from dragoman.wire.anthropic.request import belongs_to_system_prompt
from dragoman.wire.anthropic.tools import permitted_tools
from dragoman.wire.dialect import Dialect
from dragoman.wire.encoded import Encoded
from dragoman.wire.gemini.request import is_instruction
from dragoman.wire.losses import Note
from dragoman.wire.overlay import words_of
from tests.wire.edits import UNSENT, Edit, edits

Kind = Literal["request", "response"]
_OURS = frozenset({"id", "usage", "finish", "created_at", "metadata"})
"""Of a message in a request: no wire has them."""


_KINDS = frozenset({"content", "data", "mode", "format", "kind", "dialect", "role", "form"})
"""What a value is: the fields that nobody knows are those of its old kind."""


_OBJECTS = frozenset({"output", "thinking", "state", "state.conversation", "tool_choice", "tools"})
"""What is an object on some wires: it goes with all that it holds."""


def verdicts(
    dialect: Dialect,
    kind: Kind,
    wire: Mapping[str, Any],
    path: str | None = None,
    *,
    share: int = 1,
) -> Iterator[tuple[Edit, str | None]]:
    """Every n-th edit of a decoded body, and the problems with its encoding."""
    value = _decode(dialect, kind, wire, path)
    before = _encode(dialect, kind, value)
    first = crc32(repr(wire).encode()) % share  # not the same fields in each body
    for edit in islice(edits(value), first, None, share):
        if kind == "response" and edit.path.endswith(".item_id"):
            continue  # the provider's: without it the answer belongs to another
        yield edit, _problem(dialect, kind, before, edit)


def _decode(dialect: Dialect, kind: Kind, wire: Any, path: str | None) -> Any:
    if kind == "request":
        return dialect.decode_request(wire, path=path)
    return dialect.decode_response(wire)


def _encode(dialect: Dialect, kind: Kind, value: Any) -> Encoded:
    if kind == "request":
        return dialect.encode_request(value, repair=False)
    return dialect.encode_response(value)


def _problem(dialect: Dialect, kind: Kind, before: Encoded, edit: Edit) -> str | None:
    after = _encode(dialect, kind, edit.value)
    notes: list[Note] = [*after.losses, *after.repairs]
    told = [note.path for note in notes if note not in before.losses]
    again = _decode(dialect, kind, thaw(after.body), after.path)
    if dialect.name == "openai-responses" and _items(edit.value) == _items(again):
        return None
    for found in differences(edit.value, again, dialect.name, kind):
        if not any(covers(place, found) or _moves(place, found, edit) for place in told):
            return f"differs at {found}" + (f" (told {told})" if told else "")
    gone = odd(before.body) - odd(after.body) - odd_in(edit.old)
    if edit.path.rpartition(".")[2] in _KINDS:
        gone -= odd_in(edit.owner)
    if edit.new in (None, ()) and edit.path in _OBJECTS:
        gone = frozenset()
    if gone and not told:
        return f"lost {gone}"
    return None


def _items(value: Any) -> Any:
    """A Responses request item by item: the wire does not group items into messages."""
    if not isinstance(value, Request):
        return object()
    said: list[Any] = []
    for message in _settled(value, "openai-responses").messages:
        parts = _by_form(message.parts)
        if message.role is Role.ASSISTANT:
            parts = tuple(part.replace(item_id=None) for part in parts)
        for is_said, run in groupby(parts, key=lambda part: isinstance(part, _SAID)):
            plain = _plain(tuple(run), "openai-responses", "request", {})
            said += [(message.role, plain)] if is_said else plain
    rest = _plain(value.replace(messages=()), "openai-responses", "request", {})
    return said, rest


def covers(told: str, found: str) -> bool:
    """Whether a report has the path of a difference, or one above or below it."""
    return found.startswith(told) or told.startswith(found)


def _moves(told: str, found: str, edit: Edit) -> bool:
    """Whether a report is about the edit, and the difference is where it was moved to."""
    owner = edit.path.rpartition(".")[0] or edit.path
    talk = ("messages", "system")
    if edit.path.startswith(talk):
        return covers(told, owner) and found.startswith(talk)
    if not covers(told, edit.path):
        return False
    return found.startswith((owner, "tool_choice") if owner.startswith("tools") else owner)


def odd(body: Any) -> frozenset[str]:
    """The unknown texts of a body: those that begin with `odd`."""
    if isinstance(body, Mapping):
        return frozenset().union(*map(odd, body.values()), *map(odd, body.keys()))
    if isinstance(body, (list, tuple)):
        return frozenset().union(*map(odd, body))
    return frozenset({body}) if isinstance(body, str) and body.startswith("odd") else frozenset()


def odd_in(value: Any) -> frozenset[str]:
    """As `odd`, for a value."""
    if isinstance(value, Value):
        fields = (getattr(value, name) for name in value.__struct_fields__)
        return frozenset().union(*map(odd_in, fields))
    if isinstance(value, tuple):
        return frozenset().union(*map(odd_in, value))
    return odd(value)


def differences(one: Any, other: Any, dialect: str, kind: Kind) -> Iterator[str]:
    """The paths at which two values differ."""
    yield from _compared(_plain(one, dialect, kind, _numbers(one)),
                         _plain(other, dialect, kind, _numbers(other)), "")  # fmt: skip


def _numbers(value: Any) -> dict[str, str]:
    """Derived call ids, numbered, as they depend on their position."""
    messages = value.messages if isinstance(value, Request) else [c.message for c in value.choices]
    found: dict[str, str] = {}
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCall) and part.wire_id is not UNSET:
                found.setdefault(part.id, f"#{len(found)}")
    return found


def _plain(value: Any, dialect: str, kind: Kind, ids: dict[str, str]) -> Any:
    """The content of a value as plain data, without spelling and extras."""
    if isinstance(value, tuple):
        return [_plain(item, dialect, kind, ids) for item in value]
    if not isinstance(value, Value):
        return thaw(value) if isinstance(value, (Mapping, list)) else value
    if isinstance(value, (ThinkingConfig, State)) and type(value)() == value:
        return None
    unsaid = {*UNSENT, *_unsaid(value, dialect, kind)}
    if isinstance(value, Message):
        value = _plain_message(value, dialect)
    elif isinstance(value, Request):
        value = _settled(value, dialect)
    said = {
        name: _plain(getattr(value, name), dialect, kind, ids)
        for name in value.__struct_fields__
        if name not in unsaid
    }
    return {"type": type(value).__name__, **said, **_normal(value, dialect, kind, ids)}


def _normal(  # noqa: PLR0911 - one for each kind of value
    value: Value, dialect: str, kind: Kind, ids: dict[str, str]
) -> dict[str, Any]:
    """The fields of a value that have several forms, in the same one."""
    match value:
        case Message(name=None) if _holds_results(value):
            return {"name": _SAME}  # the tool has it
        case ServerTool():  # its type is its name, on some wires
            payload = thaw(value.payload)
            return {"payload": {key: payload[key] for key in payload if key != "type"}}
        case ToolCall():
            return _plain_call(value, dialect, ids)
        case ToolResult():
            return _plain_result(value, dialect, kind, ids)
        case ServerToolCall() | ServerToolResult():
            return _plain_server(value, dialect)
        case Media():
            return _plain_media(value, dialect, kind)
        case Response():
            return _plain_response(value, dialect)
        case Choice():
            is_one = dialect not in {"openai-chat", "gemini"}
            return {"finish": _end(value.finish, dialect), **({"index": 0} if is_one else {})}
        case Usage():
            return _plain_usage(value, dialect)
        case _:
            return {}


def _plain_call(call: ToolCall, dialect: str, ids: dict[str, str]) -> dict[str, Any]:
    is_own = isinstance(call.wire_id, str) and bool(call.wire_id)
    said = {
        "arguments": thaw(call._compared_fields()[-1]),
        "id": call.wire_id if is_own else ids.get(call.id, call.id),
    }
    if dialect == "gemini":
        said["kind"] = _SAME  # the tool itself has it
        if call.kind == "custom":
            said["arguments"] = {"input": call.raw}
    return said


def _end(finish: FinishReason | None, dialect: str) -> FinishReason | None:
    """The finish reason, as some wires have one word for two reasons."""
    if finish is FinishReason.REFUSAL and dialect in {"openai-chat", "gemini"}:
        return FinishReason.CONTENT_FILTER
    if finish is FinishReason.CONTEXT_FULL:
        return FinishReason.LENGTH
    if finish is FinishReason.MALFORMED_CALL and dialect.startswith("openai-"):
        return FinishReason.LENGTH  # of which clients know that no call may be run (I7)
    is_stop = finish in {FinishReason.TOOL_CALLS, FinishReason.REFUSAL}
    return FinishReason.STOP if is_stop or (finish is None and dialect == "ollama") else finish


def _plain_response(response: Response, dialect: str) -> dict[str, Any]:
    created = response.created_at
    return {
        "model": response.model or None,
        "id": response.id or None,
        "created_at": _SAME if dialect == "anthropic" or not created else int(created) or _SAME,
        **({} if response.choices else {"choices": _SAME}),
    }


def _plain_usage(usage: Usage, dialect: str) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if usage.reported_total is None or dialect in {"anthropic", "ollama"}:
        said["reported_total"] = _SAME  # the sum
    if dialect in {"ollama", "gemini"}:
        said |= {
            "input": usage.total_input, "output": usage.total_output,
            **dict.fromkeys(("cache_read", "cache_write", "thinking"), _SAME),
        }  # fmt: skip
    return said


def _plain_media(media: Media, dialect: str, kind: Kind) -> dict[str, Any]:
    said: dict[str, Any] = {"mime": media.mime or _SAME, "detail": media.detail or "auto"}
    if kind == "response":
        said = {}
    elif dialect == "ollama" or (dialect == "anthropic" and media.data is not None):
        said["mime"] = _SAME  # the data itself decides
    if media.item_id is not None or media.file_id is not None:
        said["transcript"] = _SAME  # the provider has it
    if dialect == "openai-responses":
        said["name"] = media.name or _SAME  # inline data needs one
    return said


_CODE = frozenset({"code_execution"})


def _plain_server(part: ServerToolCall | ServerToolResult, dialect: str) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if isinstance(part, ServerToolResult):
        is_told = dialect != "gemini" or part.name in _CODE
        said["is_error"] = bool(part.is_error) if is_told else _SAME
        if isinstance(part.content, Mapping):
            said["content"] = {k: thaw(part.content[k]) for k in part.content if k != "outcome"}
    elif isinstance(part.input, Mapping):
        said["input"] = {key: thaw(part.input[key]) for key in part.input if part.input[key]}
    if part.call_id is None or part.item_id is not None:
        said["call_id"] = _SAME  # the item's id
    return said


def _unsaid(value: Value, dialect: str, kind: Kind) -> Collection[str]:
    if isinstance(value, Message):
        return _OURS
    if isinstance(value, Request):
        return {"metadata"}
    if isinstance(value, ToolCall):
        luggage = {"cache", "signature"} if kind == "response" else set()
        return {"raw", "input"} | luggage | _NOWHERE[dialect]
    if isinstance(value, (Part, Citation)):
        # Answers have no signatures, cache hints or image details.
        return _NOWHERE[dialect] | (_OF_REQUESTS if kind == "response" else set())
    return ()


def _plain_message(message: Message, dialect: str) -> Message:
    role = message.role
    if role is Role.DEVELOPER and dialect == "ollama":
        role = Role.SYSTEM
    if role is Role.TOOL and not _holds_results(message):
        role = Role.USER
    if dialect == "openai-responses" and not all(isinstance(p, _SAID) for p in message.parts):
        role = Role.ASSISTANT  # items have none
    return message.replace_unchecked(role=role, parts=_ordered(message, dialect))


def _plain_result(
    result: ToolResult, dialect: str, kind: Kind, ids: dict[str, str]
) -> dict[str, Any]:
    said = {
        "content": _plain(result._compared_fields()[1], dialect, kind, ids),
        "is_error": bool(result.is_error),
        "call_id": ids.get(result.call_id, result.call_id),
    }
    if ids or dialect in {"gemini", "ollama"}:
        said["call_id"] = _SAME  # by name and order: there are no ids
    said["kind"] = _SAME  # the call has it
    if said["content"] == []:
        said["content"] = ""
    if dialect in {"gemini", "ollama"} and isinstance(said["content"], list):
        said["content"] = _told_content(result, dialect, kind, ids)
    if result.tool_name is None:
        said["tool_name"] = _SAME
    return said


def _told_content(result: ToolResult, dialect: str, kind: Kind, ids: dict[str, str]) -> Any:
    """The content with its texts joined, before the media."""
    text, parts = result.text, result.parts
    rest = [_plain(part, dialect, kind, ids) for part in parts if not isinstance(part, Text)]
    told = _SAME if result.data is not UNSET else text
    return [told, *rest] if rest else told


class _Same:
    """Equal to anything: for values that the wire derives from others."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


_SAME = _Same()


_OF_REQUESTS = {"cache", "signature", "detail", "mime", "name", "server", "kind"}
_NOWHERE = {
    # Ids that only some wires have; they carry no meaning.
    "openai-chat": {"item_id", "tool_name", "form"},
    "anthropic": {"item_id", "tool_name", "form"},
    "openai-responses": {"item_id", "tool_name"},
    "gemini": {"item_id", "form"},
    "ollama": {"item_id", "mime", "form"},
}


def _settled(request: Request, dialect: str) -> Request:
    """A request without redundant and meaningless values."""
    changes: dict[str, Any] = {"sampling": _drawn(request.sampling)}
    if request.tool_choice is not None:
        changes["tool_choice"] = _chosen(request.tool_choice, dialect)
    if request.output is not None:
        changes["output"] = _formed(request.output, dialect)
    if request.thinking is not None:
        changes["thinking"] = _thought(request.thinking, dialect)
    if dialect in {"gemini", "ollama"}:
        is_told = request.model is not None or dialect == "ollama"
        changes["stream"] = bool(request.stream) if is_told else None
    tools = request.tools
    if dialect == "openai-chat":  # the old `functions` and the search are listed separately
        tools = tuple(sorted(tools, key=_field_of))
    if dialect == "anthropic":
        tools = tuple(permitted_tools(tools, request.tool_choice).values())
    changes["tools"] = tuple(map(_fitting, tools))
    changes |= _conversation(request, dialect)
    return request.replace(**changes)


def _drawn(sampling: Sampling) -> Sampling:
    if sampling.logprobs is False:
        sampling = sampling.replace(logprobs=None)
    return sampling.replace(choices=None) if sampling.choices == 1 else sampling


def _chosen(choice: ToolChoice, dialect: str) -> ToolChoice | None:
    if choice.mode not in {"named", "allowed"}:
        choice = choice.replace(names=())
    if choice.mode == "allowed" and (not choice.names or dialect in {"anthropic", "ollama"}):
        choice = ToolChoice("required" if choice.is_required else "auto", (), choice.parallel)
    if choice.mode == "none" or (dialect == "gemini" and choice.parallel):
        choice = choice.replace(parallel=None)
    if choice.mode != "allowed":
        choice = choice.replace(is_required=False)
    elif dialect == "gemini" and choice.is_required and len(choice.names) == 1:
        choice = ToolChoice("named", choice.names, choice.parallel)
    return None if choice == ToolChoice() else choice


def _formed(output: Output, dialect: str) -> Output | None:
    if output.format != "schema":
        return None if output.format == "text" else Output(format="json")
    if output.name is None:
        name = {"openai-chat": "response", "openai-responses": "answer"}.get(dialect)
        output = output.replace(name=name)
    if dialect == "openai-responses":
        output = output.replace(schema=output.schema or {})
    if dialect in {"anthropic", "gemini", "ollama"}:
        output = output.replace(strict=None)  # every answer must match its schema
    return output


def _conversation(request: Request, dialect: str) -> dict[str, Any]:
    messages, system = request.messages, request.system
    if dialect in {"anthropic", "gemini"}:
        is_outside = belongs_to_system_prompt if dialect == "anthropic" else is_instruction
        system += tuple(part for m in messages if is_outside(m) for part in m.parts)
        messages = tuple(message for message in messages if not is_outside(message))
    if dialect == "openai-responses":
        messages = _runs(messages)
        texts = [part.text for part in system if isinstance(part, Text)]
        system = (Text("\n\n".join(texts)),) if texts else ()
    messages = tuple(
        message.replace_unchecked(role=Role.TOOL) if _holds_results(message) else message
        for message in messages
    )
    return {"messages": messages, "system": system}


def _field_of(tool: Any) -> int:
    if isinstance(tool, ServerTool) and tool.name == "web_search_options":
        return 2
    is_function = getattr(tool, "kind", None) == "function"
    return int("functions" in words_of(getattr(tool, "extras", {}), "openai-chat") and is_function)


def _fitting(tool: Any) -> Any:
    """A tool without the fields that tools of its kind don't have."""
    if not isinstance(tool, ToolDefinition):
        return tool
    if tool.kind == "custom":
        return tool.replace_unchecked(parameters=None, strict=None)
    return tool.replace_unchecked(format=None, strict=tool.strict or None)  # false is the default


def _runs(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages as Responses has them: adjacent assistant messages are one."""
    joined: list[Message] = []
    for message in messages:
        if joined and message.role is joined[-1].role is Role.ASSISTANT:
            parts = (*joined[-1].parts, *message.parts)
            joined[-1] = joined[-1].replace_unchecked(parts=parts)
        else:
            joined.append(message)
    return tuple(joined)


def _holds_results(message: Message) -> bool:
    return bool(message.parts) and all(isinstance(part, ToolResult) for part in message.parts)


def _thought(thinking: ThinkingConfig, dialect: str) -> ThinkingConfig | None:
    """Normalized thinking settings: all forms of "off" are equal, and an effort implies "on"."""
    if dialect == "openai-chat":
        return thinking
    if dialect == "openai-responses":
        if thinking.visible is False:
            thinking = thinking.replace(summary=None)
        elif thinking.visible and thinking.summary is None:
            thinking = thinking.replace(summary="auto")
        off = thinking.enabled is False or thinking.effort == "none"
        is_asked = thinking.enabled and thinking.effort is None
        return thinking.replace(visible=None, enabled=False if off else is_asked or None,
                                effort="none" if off else thinking.effort)  # fmt: skip
    if thinking.enabled is False or thinking.effort == "none" or thinking.budget == 0:
        return ThinkingConfig(enabled=False)
    has_measure = thinking.budget is not None or thinking.effort is not None
    if dialect == "anthropic":
        has_measure = thinking.budget is not None
    if thinking.enabled and has_measure:
        thinking = thinking.replace(enabled=None)
    return thinking


_SAID = (Text, Media, Refusal)
_ORDER = ("Thinking", "Text", "Opaque", "Refusal", "Audio", "Image", "Video", "File",
          "ServerToolCall", "ServerToolResult", "ToolCall", "ToolResult")  # fmt: skip


def _ordered(message: Message, dialect: str) -> tuple[Any, ...]:  # noqa: PLR0911 - one for each
    """The parts in the order of the wire; texts joined where it has only one."""
    parts, role = message.parts, message.role
    match dialect:
        case "openai-responses":
            return _by_form(parts)
        case "anthropic":  # a refusal is beside the content
            return tuple(sorted(parts, key=lambda part: isinstance(part, Refusal)))
        case "gemini" if _holds_results(message):  # in the order of the calls
            return tuple(sorted(parts, key=lambda part: part.text))
        case "gemini":
            return tuple(part for part in parts if not _is_nothing(part))
        case "openai-chat":
            parts = _chat_parts(parts, role)
            return parts if role is not Role.ASSISTANT else tuple(sorted(parts, key=_place))
        case "ollama":
            return _joined(tuple(sorted(parts, key=_place)), "" if role is Role.ASSISTANT else "\n")
        case _:
            return parts


def _place(part: Part) -> int:
    return _ORDER.index(type(part).__name__)


def _is_nothing(part: Part) -> bool:
    return isinstance(part, (Text, Thinking)) and part.is_empty


def _chat_parts(parts: tuple[Any, ...], role: Role) -> tuple[Any, ...]:
    parts = tuple(piece for part in parts if not _is_nothing(part) for piece in _pieces(part))
    cited = [citation for part in parts for citation in getattr(part, "citations", ())]
    at = next((i for i, part in enumerate(parts) if isinstance(part, Text)), None)
    if role is not Role.ASSISTANT or at is None:
        return parts
    parts = tuple(p.replace(citations=()) if isinstance(p, Text) else p for p in parts)
    return (*parts[:at], parts[at].replace(citations=cited), *parts[at + 1 :])  # the message has it


def _joined(parts: tuple[Any, ...], between: str) -> tuple[Any, ...]:
    kinds = (Thinking, Text)
    texts = [kind(between.join(p.text for p in parts if type(p) is kind)) for kind in kinds]
    rest = [part for part in parts if type(part) not in kinds]
    return (*(text for text in texts if text.text), *rest)


def _pieces(part: Any) -> tuple[Any, ...]:
    """Thinking that is both readable and sealed is two parts."""
    if isinstance(part, Thinking) and part.data is not None and part.text:
        return part.replace(data=None), Thinking("", part.data, "redacted")
    return (part,)


def _by_form(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """The parts with summaries before full texts, in each run of thinking."""
    runs = groupby(parts, key=lambda part: isinstance(part, Thinking) and (part.item_id,))
    return tuple(
        part
        for thinking, run in runs
        for part in (_sealed_first(sorted(map(_shown, run), key=_rank)) if thinking else run)
    )


def _sealed_first(run: list[Thinking]) -> list[Thinking]:
    """The seal belongs to the item, and is on the first of its parts."""
    seals = [part.data for part in run if part.data is not None]
    if len(seals) != 1:
        return run
    first, *others = (part.replace(data=None) for part in run)
    return [first.replace(data=seals[0]), *others]


def _shown(part: Thinking) -> Thinking:
    return part.replace(form="summary") if part.form == "redacted" and part.text else part


def _rank(part: Thinking) -> int:
    return ("redacted", "summary", "full").index(part.form)


def _compared(one: Any, other: Any, path: str) -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict) and "type" in one:
        for key in one | other:
            yield from _compared(one.get(key), other.get(key), f"{path}.{key}" if path else key)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, pair in enumerate(zip(one, other, strict=True)):
            yield from _compared(*pair, f"{path}[{index}]")
    elif one is not _SAME and other is not _SAME and one != other:
        yield path
