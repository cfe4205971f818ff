"""The view of a request body that the rules work on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from dragoman.wire.openai_chat.dialect import TARGET
from dragoman.wire.target import Target
from dragoman.wire.violations import Object, Placed, field, listed


class Round:
    """The paths and ids of a message's calls and of the tool messages right after it."""

    __slots__ = ("calls", "ids", "results")

    def __init__(self, calls: list[tuple[str, Any]]) -> None:
        self.calls = calls
        self.ids = {tool_id for _, tool_id in calls}
        self.results: list[tuple[str, Any]] = []


class View:
    """A request body and the lists in it."""

    def __init__(self, body: Object, target: Target | None = None) -> None:
        self.body = body
        self.target = target or TARGET
        self.is_vendors = target is None
        self.messages = listed(body, "messages")

    def with_role(self, role: str) -> Iterator[Placed]:
        """The messages of one role."""
        return ((path, message) for path, message in self.messages if message.get("role") == role)

    @cached_property
    def is_thinking(self) -> bool:
        """Whether thinking is on, according to the body or the target."""
        switch = field(self.body, "thinking").get("type")
        template = field(self.body, "chat_template_kwargs").get("enable_thinking")
        if switch == "disabled" or template is False or self.body.get("reasoning_effort") == "none":
            return False
        return switch == "enabled" or template is True or self.target.thinking.is_on_by_default

    @property
    def may_think_in_content(self) -> bool:
        """Whether thinking may be a content part, for this host or, if unknown, in this body.

        OpenAI has no such parts.
        """
        fields = self.target.thinking.fields
        is_unknown = (
            not fields and not self.is_vendors and self.target.thinking.sent_back != "never"
        )
        return is_unknown or "content" in fields

    @property
    def forces_tools(self) -> bool:
        """Whether the model is forced to call a tool."""
        choice, kind = self.body.get("tool_choice"), field(self.body, "tool_choice").get("type")
        return choice in ("required", "any") or kind in ("function", "custom")

    @cached_property
    def rounds(self) -> list[Round]:
        """Each non-tool message with the tool messages that follow it."""
        rounds = [Round([])]
        for path, message in self.messages:
            if message.get("role") == "tool":
                tool_id = _id(message.get("tool_call_id"))
                rounds[-1].results.append((f"{path}.tool_call_id", tool_id))
            else:
                called = listed(message, "tool_calls", path)
                rounds.append(Round([(f"{at}.id", _id(call.get("id"))) for at, call in called]))
        return rounds

    @cached_property
    def functions(self) -> list[Placed]:
        """The declared functions."""
        declared = [
            (f"{path}.function", field(tool, "function"))
            for path, tool in listed(self.body, "tools")
            if tool.get("type", "function") == "function"
        ]
        return declared + listed(self.body, "functions")

    @cached_property
    def called(self) -> list[Placed]:
        """The functions of all calls."""
        return [
            (f"{place}.function", field(call, "function"))
            for path, message in self.messages
            for place, call in listed(message, "tool_calls", path)
            if call.get("type", "function") == "function"
        ]

    @property
    def strict_schemas(self) -> list[tuple[str, Any]]:
        """The strict schemas, if the target checks them."""
        if not self.target.schemas.checks_strict:
            return []
        found = [
            (f"{path}.parameters", function["parameters"])
            for path, function in self.functions
            if function.get("strict") is True and function.get("parameters") is not None
        ]
        output = field(field(self.body, "response_format"), "json_schema")
        if output.get("strict") is True and output.get("schema") is not None:
            found.append(("response_format.json_schema.schema", output["schema"]))
        return found


def _id(value: object) -> str | None:
    return value if isinstance(value, str) else None
