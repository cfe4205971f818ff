"""Error results for tool calls, worded so that the model can act on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dragoman.agent.tool_results import whole_characters
from dragoman.errors import InvalidInputError, ToolError, ToolRetry
from dragoman.model.jsontext import loads
from dragoman.model.tools import ToolCall, ToolResult, make_result

MAX_CHARS = 8_000
"""Maximum characters of an error text."""
_NAME_CHARS = 100


def unknown(call: ToolCall, names: Iterable[str]) -> ToolResult:
    """There is no tool of that name."""
    known = ", ".join(f"`{name}`" for name in names)
    others = f"The tools are: {known}." if known else "There are no tools: answer without them."
    return failure(call, f"There is no tool named {_named(call)}. {others}")


def unfit(call: ToolCall, error: Exception) -> ToolResult:
    """The arguments don't match the tool's schema."""
    reason = _text(error) if isinstance(error, InvalidInputError) else _told(error)
    return failure(call, f"{_named(call)} was not run: {reason}. Correct this and call it again.")


def unreadable(call: ToolCall) -> ToolResult:
    """The arguments are not a JSON object."""
    reason = "the arguments are not a JSON object"
    try:
        loads(call.raw or "")
    except InvalidInputError as error:
        reason = f"{reason} ({error})"
    return failure(call, f"{_named(call)} was not run: {reason}. Send them as one JSON object.")


def late(call: ToolCall, seconds: float) -> ToolResult:
    """The tool timed out."""
    unit = "second" if seconds == 1 else "seconds"
    return failure(
        call,
        f"{_named(call)} took longer than {seconds:g} {unit} and was not waited for."
        " Its outcome is unknown: it may or may not have taken effect.",
    )


def cancelled(call: ToolCall) -> ToolResult:
    """The tool was cancelled by other code than the run."""
    return failure(
        call,
        f"{_named(call)} was cancelled before it ended."
        " Its outcome is unknown: it may or may not have taken effect.",
    )


def failed(call: ToolCall, error: BaseException) -> ToolResult:
    """The tool raised an exception."""
    advice = _text(error) if isinstance(error, ToolError) else ""
    if isinstance(error, ToolRetry):
        asked = f"{_named(call)} asks to be called again"
        return failure(call, f"{asked}: {advice}" if advice else f"{asked}.")
    if advice:
        return failure(call, f"{_named(call)} failed: {advice}")
    return failure(call, f"{_named(call)} failed: {_told(_original(error))}")


def failure(call: ToolCall, text: str) -> ToolResult:
    """An error result for a call, with its text truncated if too long."""
    if len(text) > MAX_CHARS:
        text = f"{text[:MAX_CHARS]}… (cut: the first {MAX_CHARS:,} of {len(text):,} characters)"
    text = whole_characters(text)
    return make_result(call.id, text, tool_name=call.name, is_error=True, kind=call.kind)


def _named(call: ToolCall) -> str:
    name = call.name
    return f"`{name}`" if len(name) <= _NAME_CHARS else f"`{name[:_NAME_CHARS]}…`"


def _original(error: BaseException) -> BaseException:
    """The tool's own exception, which Python wraps if a coroutine may not raise it."""
    cause = error.__cause__
    is_wrapped = type(error) is RuntimeError and isinstance(cause, (StopIteration, GeneratorExit))
    return cause if is_wrapped and cause is not None else error


def _told(error: BaseException) -> str:
    """The type and text of an exception, and of the members of an exception group."""
    told = ": ".join(filter(None, (type(error).__name__, _text(error))))
    inner = "; ".join(_leaves(error))
    return f"{told}: {inner}" if inner else told


def _leaves(error: BaseException) -> Iterator[str]:
    pending = [error]
    while pending:
        each = pending.pop()
        if isinstance(each, BaseExceptionGroup):
            pending += reversed(each.exceptions)
        elif each is not error:
            yield _told(each)


def _text(error: BaseException) -> str:
    """The text of an exception; empty if even that raises."""
    try:
        return str.__str__(str(error))
    except Exception:  # noqa: BLE001 - a tool's own class, which may do anything
        return ""
