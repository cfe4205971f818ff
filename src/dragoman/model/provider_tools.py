"""Built-in tools of providers, such as web search, with the options that they share.

>>> WebSearch(allowed_domains=["python.org"], max_uses=3).kind
'web_search'

Each class is one kind of tool. Every dialect that supports the kind encodes it in its own format;
options of a single provider go into the extras. Any other provider tool is a `ServerTool`.

Some run on the provider's side (web search, code execution). Others are known to the model but run
by the caller (shell, text editor): their calls arrive as ordinary tool calls, which a function
declared with `@tool(implements=Shell())` can handle.
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
    """The approximate location of the user."""

    city: str | None = None
    region: str | None = None
    country: str | None = None
    """Two-letter country code, such as `CH`."""
    timezone: str | None = None
    """IANA time zone, such as `Europe/Zurich`."""

    def __post_init__(self) -> None:
        expect_fields(self, city=str, region=str, country=str, timezone=str)


KNOWN = "dragoman"
"""The `dialect` of these tools, which belong to no single provider."""


class ProviderTool(ServerTool, frozen=True, kw_only=True, tag="provider_tool"):
    """Base class of the built-in provider tools."""

    is_run_by_caller: ClassVar[bool] = False
    """Whether the caller has to run the tool."""
    kept_by_provider: ClassVar[frozenset[str]] = frozenset()
    """Options that refer to a provider's own resources, such as files, stores or sandboxes."""
    call_names: ClassVar[tuple[str, ...]] = ()
    """The names that providers use for it in calls, if the caller runs it."""

    name: str = ""
    dialect: str = KNOWN
    defer_loading: bool | None = None
    """Whether the model sees the tool only after a tool search has found it."""
    allowed_callers: tuple[str, ...] = ()
    """Who may call it: the model itself (`direct`), or code that the provider runs."""
    extras: Mapping[str, Any] = EMPTY
    """Provider-specific options, keyed by dialect."""
    function: ToolDefinition | None = None
    """The function tool to offer instead to providers that have no such tool."""

    def __post_init__(self) -> None:
        super().__post_init__()
        own_tuple(self, "allowed_callers", str)
        own_mapping(self, "extras")
        expect_fields(self, defer_loading=bool, cache=CacheHint, function=ToolDefinition)

    def arguments_for(self, given: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
        """The arguments of a call, limited to a function's parameter names.

        Providers send different arguments for the same tool; those without a parameter, and
        nulls, are left out.
        """
        return {key: value for key, value in given.items() if key in names and value is not None}

    @property
    def kind(self) -> str:
        """The kind of tool; the same in every dialect."""
        return str(self.__struct_config__.tag)

    def _compared_fields(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__struct_fields__ if name != "extras")


class WebSearch(ProviderTool, frozen=True, kw_only=True, tag="web_search"):
    """Searches the web."""

    name: str = "web_search"
    allowed_domains: tuple[str, ...] = ()
    """Return results from these domains only; empty means no restriction."""
    blocked_domains: tuple[str, ...] = ()
    max_uses: int | None = None
    """Maximum number of searches per response."""
    location: Location | None = None
    context_size: str | None = None
    """How much of the results the model sees: `low`, `medium` or `high`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        own_tuple(self, "allowed_domains", str)
        own_tuple(self, "blocked_domains", str)
        expect_fields(self, max_uses=int, location=Location, context_size=str)


class WebFetch(ProviderTool, frozen=True, kw_only=True, tag="web_fetch"):
    """Fetches pages whose URLs are in the conversation."""

    name: str = "web_fetch"
    allowed_domains: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()
    max_uses: int | None = None
    max_content_tokens: int | None = None
    """Maximum number of tokens of a page that the model sees."""
    citations: bool | None = None
    """Whether the response cites the passages it relies on."""

    def __post_init__(self) -> None:
        super().__post_init__()
        own_tuple(self, "allowed_domains", str)
        own_tuple(self, "blocked_domains", str)
        expect_fields(self, max_uses=int, max_content_tokens=int, citations=bool)


class CodeExecution(ProviderTool, frozen=True, kw_only=True, tag="code_execution"):
    """Runs code written by the model, in a sandbox of the provider."""

    kept_by_provider: ClassVar[frozenset[str]] = frozenset({"container", "file_ids"})

    name: str = "code_execution"
    container: str | None = None
    """The id of an existing sandbox; `None` creates a new one."""
    file_ids: tuple[str, ...] = ()
    """Uploaded files that the code may read."""

    def __post_init__(self) -> None:
        super().__post_init__()
        own_tuple(self, "file_ids", str)
        expect_fields(self, container=str)


class FileSearch(ProviderTool, frozen=True, kw_only=True, tag="file_search"):
    """Searches uploaded files."""

    kept_by_provider: ClassVar[frozenset[str]] = frozenset({"stores", "filters"})

    name: str = "file_search"
    stores: tuple[str, ...] = ()
    """The ids of vector stores, or the names of file search stores."""
    max_results: int | None = None
    filters: Any = None
    """Which files to search, in the provider's format."""

    def __post_init__(self) -> None:
        super().__post_init__()
        own_tuple(self, "stores", str)
        expect_fields(self, max_results=int)
        own(self, "filters")


class ImageGeneration(ProviderTool, frozen=True, kw_only=True, tag="image_generation"):
    """Generates images."""

    name: str = "image_generation"
    model: str | None = None
    size: str | None = None
    """Width and height, such as `1024x1024`."""
    quality: str | None = None
    format: str | None = None
    """`png`, `webp` or `jpeg`."""
    background: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        expect_fields(self, model=str, size=str, quality=str, format=str, background=str)


class McpServer(ProviderTool, frozen=True, kw_only=True, tag="mcp"):
    """The tools of an MCP server, called by the provider."""

    name: str = "mcp"
    label: str
    """The server's name in calls."""
    url: str | None = None
    authorization: str | None = None
    """A token for the server; never shown in a repr."""
    headers: Mapping[str, Any] = EMPTY
    """Headers sent to the server; never shown in a repr."""
    description: str | None = None
    allowed_tools: tuple[str, ...] | None = None
    """The tools that may be called; `None` means all."""
    approval: str | None = None
    """Whether the caller has to approve each call: `always` or `never`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        own_mapping(self, "headers")
        if self.allowed_tools is not None:
            own_tuple(self, "allowed_tools", str)
        expect(self.label, str, "McpServer.label")
        expect_fields(self, url=str, authorization=str, description=str, approval=str)


class ToolSearch(ProviderTool, frozen=True, kw_only=True, tag="tool_search"):
    """Searches the tools that have `defer_loading` set."""

    name: str = "tool_search"
    method: str | None = None
    """The search method, where there is a choice: `regex` or `bm25`."""
    execution: str | None = None
    """Who runs the search: `server` or `client`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        expect_fields(self, method=str, execution=str)


class ComputerUse(ProviderTool, frozen=True, kw_only=True, tag="computer_use"):
    """Controls a screen, mouse and keyboard; the caller performs the actions."""

    is_run_by_caller: ClassVar[bool] = True
    call_names: ClassVar[tuple[str, ...]] = ("computer",)

    name: str = "computer_use"
    display_width: int | None = None
    display_height: int | None = None
    environment: str | None = None
    """The environment: `browser`, `linux`, `mac` or `windows`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        expect_fields(self, display_width=int, display_height=int, environment=str)


class Shell(ProviderTool, frozen=True, kw_only=True, tag="shell"):
    """Shell commands, run by the caller."""

    is_run_by_caller: ClassVar[bool] = True
    call_names: ClassVar[tuple[str, ...]] = ("shell", "bash", "local_shell")

    name: str = "shell"

    def arguments_for(self, given: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
        """Converts between `command` (one string) and `commands` (a list), as the function needs.

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
    """Edits files one at a time; the caller applies the edits."""

    is_run_by_caller: ClassVar[bool] = True
    call_names: ClassVar[tuple[str, ...]] = ("str_replace_based_edit_tool", "str_replace_editor")

    name: str = "text_editor"


class ApplyPatch(ProviderTool, frozen=True, kw_only=True, tag="apply_patch"):
    """Patches files; the caller applies the patches."""

    is_run_by_caller: ClassVar[bool] = True
    call_names: ClassVar[tuple[str, ...]] = ("apply_patch",)

    name: str = "apply_patch"


class Memory(ProviderTool, frozen=True, kw_only=True, tag="memory"):
    """Files that the model keeps across conversations; the caller stores them."""

    is_run_by_caller: ClassVar[bool] = True
    call_names: ClassVar[tuple[str, ...]] = ("memory",)

    name: str = "memory"


KnownTool = (
    WebSearch | WebFetch | CodeExecution | FileSearch | ImageGeneration | McpServer | ToolSearch
    | ComputerUse | Shell | TextEditor | ApplyPatch | Memory
)  # fmt: skip
"""Any of the built-in provider tools."""
