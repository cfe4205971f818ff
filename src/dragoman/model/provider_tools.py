"""Tools that providers bring along, with the options that they share: web search and the like.

>>> WebSearch(allowed_domains=["python.org"], max_uses=3).kind
'web_search'

Each class is one kind. A dialect that has the kind writes it in its own words; what only one
provider has of it stays in the extras. A provider's tool that is none of these is a `ServerTool`.

Some run at the provider (web search, code execution), others are known to the model and run by the
caller (a shell, a text editor): those come back as ordinary tool calls, which a function can
answer that was made by `@tool(implements=Shell())`.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from dragoman.model.frozen import EMPTY
from dragoman.model.parts import CacheHint
from dragoman.model.tools import ServerTool, ToolDefinition
from dragoman.model.value import Value, expect, expect_fields, own, own_mapping, own_tuple


class Location(Value, frozen=True, kw_only=True):
    """Where the person who asks is, roughly."""

    city: str | None = None
    region: str | None = None
    country: str | None = None
    """Two letters: `CH`."""
    timezone: str | None = None
    """As the IANA database names it: `Europe/Zurich`."""

    def __post_init__(self) -> None:
        expect_fields(self, city=str, region=str, country=str, timezone=str)


KNOWN = "dragoman"
"""The `dialect` of these: they are nobody's own."""


class ProviderTool(ServerTool, frozen=True, kw_only=True, tag="provider_tool"):
    """What all of them have."""

    is_run_by_caller: ClassVar[bool] = False
    """Whether the model only knows it, and the caller has to run it."""
    kept_by_provider: ClassVar[frozenset[str]] = frozenset()
    """Options that name what one provider keeps: files, stores, sandboxes."""
    call_names: ClassVar[tuple[str, ...]] = ()
    """What providers call it in calls, where the caller runs it."""

    name: str = ""
    dialect: str = KNOWN
    defer_loading: bool | None = None
    """Whether the model sees it only after a search for tools has found it."""
    allowed_callers: tuple[str, ...] = ()
    """Who may call it: the model itself (`direct`), or code that the provider runs."""
    extras: Mapping[str, Any] = EMPTY
    """What only one provider knows of it, by dialect."""
    function: ToolDefinition | None = None
    """What models are told instead whose provider has no such tool."""

    def __post_init__(self) -> None:
        super().__post_init__()
        own_tuple(self, "allowed_callers", str)
        own_mapping(self, "extras")
        expect_fields(self, defer_loading=bool, cache=CacheHint, function=ToolDefinition)

    def arguments_for(self, given: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
        """The arguments of a call, for a function with parameters of these names.

        Providers' calls say more or less of the same; what the function has no parameter for, and
        what is null, is left out.
        """
        return {key: value for key, value in given.items() if key in names and value is not None}

    @property
    def kind(self) -> str:
        """Which kind of tool it is; the same in every dialect."""
        return str(self.__struct_config__.tag)

    def _said(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__struct_fields__ if name != "extras")


class WebSearch(ProviderTool, frozen=True, kw_only=True, tag="web_search"):
    """Searches the web."""

    name: str = "web_search"
    allowed_domains: tuple[str, ...] = ()
    """Results from elsewhere are left out; empty: from everywhere."""
    blocked_domains: tuple[str, ...] = ()
    max_uses: int | None = None
    """How many times in one answer."""
    location: Location | None = None
    context_size: str | None = None
    """How much of the results the model gets to see: low, medium, high."""

    def __post_init__(self) -> None:
        super().__post_init__()
        own_tuple(self, "allowed_domains", str)
        own_tuple(self, "blocked_domains", str)
        expect_fields(self, max_uses=int, location=Location, context_size=str)


class WebFetch(ProviderTool, frozen=True, kw_only=True, tag="web_fetch"):
    """Reads pages whose addresses are in the conversation."""

    name: str = "web_fetch"
    allowed_domains: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()
    max_uses: int | None = None
    max_content_tokens: int | None = None
    """How much of a page the model gets to see."""
    citations: bool | None = None
    """Whether the answer says which passages it relies on."""

    def __post_init__(self) -> None:
        super().__post_init__()
        own_tuple(self, "allowed_domains", str)
        own_tuple(self, "blocked_domains", str)
        expect_fields(self, max_uses=int, max_content_tokens=int, citations=bool)


class CodeExecution(ProviderTool, frozen=True, kw_only=True, tag="code_execution"):
    """Runs code that the model writes, in a sandbox of the provider's."""

    kept_by_provider: ClassVar[frozenset[str]] = frozenset({"container", "file_ids"})

    name: str = "code_execution"
    container: str | None = None
    """A sandbox that is there already, by its id; None: a new one."""
    file_ids: tuple[str, ...] = ()
    """Uploaded files that the code can read."""

    def __post_init__(self) -> None:
        super().__post_init__()
        own_tuple(self, "file_ids", str)
        expect_fields(self, container=str)


class FileSearch(ProviderTool, frozen=True, kw_only=True, tag="file_search"):
    """Searches files that were uploaded before."""

    kept_by_provider: ClassVar[frozenset[str]] = frozenset({"stores", "filters"})

    name: str = "file_search"
    stores: tuple[str, ...] = ()
    """Where to look: the ids of vector stores, the names of file search stores."""
    max_results: int | None = None
    filters: Any = None
    """Which files, in the provider's own terms."""

    def __post_init__(self) -> None:
        super().__post_init__()
        own_tuple(self, "stores", str)
        expect_fields(self, max_results=int)
        own(self, "filters")


class ImageGeneration(ProviderTool, frozen=True, kw_only=True, tag="image_generation"):
    """Draws pictures."""

    name: str = "image_generation"
    model: str | None = None
    size: str | None = None
    """Width and height: `1024x1024`."""
    quality: str | None = None
    format: str | None = None
    """png, webp, jpeg."""
    background: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        expect_fields(self, model=str, size=str, quality=str, format=str, background=str)


class McpServer(ProviderTool, frozen=True, kw_only=True, tag="mcp"):
    """The tools of an MCP server, which the provider calls."""

    name: str = "mcp"
    label: str
    """What the server is called in calls."""
    url: str | None = None
    authorization: str | None = None
    """A token for the server; never printed."""
    headers: Mapping[str, Any] = EMPTY
    """Sent to the server; never printed."""
    description: str | None = None
    allowed_tools: tuple[str, ...] | None = None
    """None: all of them."""
    approval: str | None = None
    """Whether the caller has to agree to each call: always, never."""

    def __post_init__(self) -> None:
        super().__post_init__()
        own_mapping(self, "headers")
        if self.allowed_tools is not None:
            own_tuple(self, "allowed_tools", str)
        expect(self.label, str, "McpServer.label")
        expect_fields(self, url=str, authorization=str, description=str, approval=str)


class ToolSearch(ProviderTool, frozen=True, kw_only=True, tag="tool_search"):
    """Finds tools among those whose loading is deferred."""

    name: str = "tool_search"
    method: str | None = None
    """How it searches, where there is a choice: regex, bm25."""
    execution: str | None = None
    """Who searches: server, client."""

    def __post_init__(self) -> None:
        super().__post_init__()
        expect_fields(self, method=str, execution=str)


class ComputerUse(ProviderTool, frozen=True, kw_only=True, tag="computer_use"):
    """A screen, a mouse and a keyboard, which the caller operates as the model says."""

    is_run_by_caller: ClassVar[bool] = True
    call_names: ClassVar[tuple[str, ...]] = ("computer",)

    name: str = "computer_use"
    display_width: int | None = None
    display_height: int | None = None
    environment: str | None = None
    """What is on the screen: browser, linux, mac, windows."""

    def __post_init__(self) -> None:
        super().__post_init__()
        expect_fields(self, display_width=int, display_height=int, environment=str)


class Shell(ProviderTool, frozen=True, kw_only=True, tag="shell"):
    """Commands for a shell, run by the caller."""

    is_run_by_caller: ClassVar[bool] = True
    call_names: ClassVar[tuple[str, ...]] = ("shell", "bash", "local_shell")

    name: str = "shell"

    def arguments_for(self, given: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
        """As for all; a `command` is one text, and `commands` are several, whoever asks.

        >>> Shell().arguments_for({"command": ["ls", "a file"]}, {"command"})
        {'command': "ls 'a file'"}
        """
        found = dict(given)
        command, commands = found.get("command"), found.get("commands")
        if isinstance(command, (list, tuple)) and all(isinstance(word, str) for word in command):
            found["command"] = command = shlex.join(command)  # a program and its arguments
        if commands is None and isinstance(command, str):
            found["commands"] = [command]
        elif command is None and isinstance(commands, (list, tuple)):
            found["command"] = "\n".join(map(str, commands))
        return super().arguments_for(found, names)


class TextEditor(ProviderTool, frozen=True, kw_only=True, tag="text_editor"):
    """Edits of files, one at a time, made by the caller."""

    is_run_by_caller: ClassVar[bool] = True
    call_names: ClassVar[tuple[str, ...]] = ("str_replace_based_edit_tool", "str_replace_editor")

    name: str = "text_editor"


class ApplyPatch(ProviderTool, frozen=True, kw_only=True, tag="apply_patch"):
    """Patches to files, applied by the caller."""

    is_run_by_caller: ClassVar[bool] = True
    call_names: ClassVar[tuple[str, ...]] = ("apply_patch",)

    name: str = "apply_patch"


class Memory(ProviderTool, frozen=True, kw_only=True, tag="memory"):
    """Files that the model keeps from one conversation to the next, held by the caller."""

    is_run_by_caller: ClassVar[bool] = True
    call_names: ClassVar[tuple[str, ...]] = ("memory",)

    name: str = "memory"


KnownTool = (
    WebSearch | WebFetch | CodeExecution | FileSearch | ImageGeneration | McpServer | ToolSearch
    | ComputerUse | Shell | TextEditor | ApplyPatch | Memory
)  # fmt: skip
"""Any of the kinds."""
