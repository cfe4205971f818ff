"""`mcp_servers`: reads servers from the JSON files of other programs.

Claude Desktop and Cursor (`mcpServers`), Claude Code (`.mcp.json`, with `${VAR:-default}`), and VS
Code (`servers` and `inputs`, with comments and `${input:…}`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, Unpack

from dragoman.errors import ConfigError, InvalidInputError
from dragoman.mcp.server import MCPServer, ServerOptions
from dragoman.mcp.tools import alias
from dragoman.model.frozen import EMPTY
from dragoman.model.jsontext import loads
from dragoman.model.value import expect

Inputs: TypeAlias = Mapping[str, str] | Callable[[str, str], str]
"""The values of `${input:…}` by id, or a function of an input's id and description."""

_MAX_FILE_BYTES = 1_000_000
_MAX_SERVERS = 100
_MAX_PREFIX = 32
_TRANSPORTS = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamableHttp": "http",
    "sse": "sse",
}
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', re.DOTALL)
_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII).fullmatch


def mcp_servers(
    source: str | PathLike[str] | Mapping[str, Any],
    *,
    inputs: Inputs = EMPTY,
    workspace: str | PathLike[str] | None = None,
    **options: Unpack[ServerOptions],
) -> list[MCPServer]:
    """The servers in a file, or in its parsed content; `options` apply to all of them.

    ```python
    agent = Agent("anthropic:claude-sonnet-4-5", tools=mcp_servers(".mcp.json"))
    ```

    Tool names are prefixed with the server's name, unless `prefix` is given. Environment and editor
    variables are substituted; `workspace` is `${workspaceFolder}`, by default the current
    directory. Servers marked `disabled` are skipped. Nothing is started yet. Such a file names
    programs to run: only read files that you trust.
    """
    document = dict(source) if isinstance(source, Mapping) else _read(source)
    servers, asked = _parts(document)
    variables = _Variables(inputs, asked, Path(workspace or Path.cwd()).absolute())
    found: list[MCPServer] = []
    entries: Mapping[Any, Any] = servers
    for name, entry in entries.items():
        if not isinstance(name, str) or not isinstance(entry, Mapping):
            msg = "in an MCP servers file, each server must be an object under its name"
            raise ConfigError(msg)
        if entry.get("disabled") is not True:
            found.append(_server(name, entry, variables, options))
    return found


def _read(source: str | PathLike[str]) -> dict[str, Any]:
    expect(source, (str, PathLike), "the file of MCP servers")
    path = Path(source).expanduser()
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
        text = content.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or "it is not UTF-8 text"
    else:
        problem = "it is too large" if len(content) > _MAX_FILE_BYTES else ""
        if not problem:
            return _parsed(text, path.name)
    msg = f"can't read the MCP servers file `{path.name}`: {problem}"
    raise ConfigError(msg)


def _parsed(text: str, name: str) -> dict[str, Any]:
    """Parse JSON with the comments and trailing commas that editors allow."""
    plain = _COMMENT.sub(lambda found: found[1] or " ", text)
    plain = _TRAILING_COMMA.sub(lambda found: found[1] or "", plain)
    try:
        document = loads(plain)
    except InvalidInputError as error:
        problem = str(error)
    else:
        if isinstance(document, dict):
            return document
        problem = "it is not a JSON object"
    msg = f"the MCP servers file `{name}` is invalid: {problem}"
    raise ConfigError(msg)


def _parts(document: Mapping[str, Any]) -> tuple[Mapping[str, Any], Any]:
    """The servers, and the inputs that they declare."""
    inner = document.get("mcp")
    if isinstance(inner, Mapping) and "servers" in inner:
        document = inner  # VS Code's settings
    servers = document.get("mcpServers", document.get("servers"))
    if not isinstance(servers, Mapping):
        msg = 'an MCP servers file must have the key "mcpServers" or "servers"'
        raise ConfigError(msg)
    if len(servers) > _MAX_SERVERS:
        msg = f"the MCP servers file has {len(servers)} servers; the maximum is {_MAX_SERVERS}"
        raise ConfigError(msg)
    return servers, document.get("inputs")


def _server(
    name: str, entry: Mapping[str, Any], variables: _Variables, options: ServerOptions
) -> MCPServer:
    given: ServerOptions = {"name": name, "prefix": alias(name)[:_MAX_PREFIX], **options}
    fields = _Fields(name, entry, variables)
    kind = fields.kind()
    if kind == "stdio":
        folder = fields.text("cwd")
        return MCPServer.stdio(
            fields.needed("command"), *fields.texts("args"), cwd=folder or None,
            env={**fields.env_file(), **fields.mapping("env")}, **given,
        )  # fmt: skip
    make = MCPServer.sse if kind == "sse" else MCPServer.http
    try:
        return make(fields.needed("url"), headers=fields.mapping("headers"), **given)
    except InvalidInputError as error:
        problem = str(error)
    msg = f"the MCP server `{name}`: {problem}"
    raise ConfigError(msg)


class _Fields:
    """The fields of one server, with their variables substituted."""

    def __init__(self, server: str, entry: Mapping[str, Any], variables: _Variables) -> None:
        self._server = server
        self._entry = entry
        self._variables = variables

    def kind(self) -> str:
        """The transport: as declared, or inferred from the fields."""
        said = self._entry.get("type")
        if said is not None:
            kind = _TRANSPORTS.get(said) if isinstance(said, str) else None
            if kind is None:
                self.fail("type must be stdio, http or sse")
            return kind
        if "command" in self._entry:
            return "stdio"
        return "sse" if self.text("url").rstrip("/").endswith("/sse") else "http"

    def needed(self, field: str) -> str:
        """A required string."""
        found = self.text(field)
        if not found:
            self.fail(f"{field} is missing")
        return found

    def text(self, field: str) -> str:
        """An optional string."""
        return self._filled(self._entry.get(field, ""), field)

    def texts(self, field: str) -> list[str]:
        """A list of strings."""
        found = self._entry.get(field) or []
        if not isinstance(found, (list, tuple)):
            self.fail(f"{field} must be a list of strings")
        return [self._filled(each, field) for each in found]

    def mapping(self, field: str) -> dict[str, str]:
        """Strings by name; numbers and booleans are converted."""
        found = self._entry.get(field) or {}
        if not isinstance(found, Mapping):
            self.fail(f"{field} must be an object of strings")
        return {
            str(name): self._filled(_written(value), field)
            for name, value in found.items()
            if value is not None
        }

    def env_file(self) -> dict[str, str]:
        """The variables in the `envFile`."""
        name = self.text("envFile")
        if not name:
            return {}
        try:
            lines = Path(name).expanduser().read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError):
            lines = None
        if lines is None:
            self.fail("envFile can't be read")
        return dict(_assigned(line) for line in lines if _is_assignment(line))

    def _filled(self, value: Any, field: str) -> str:
        if not isinstance(value, str):
            self.fail(f"{field} must contain strings")
        try:
            return self._variables.filled(value)
        except ConfigError as error:
            problem = str(error)
        return self.fail(f"{field}: {problem}")

    def fail(self, text: str) -> NoReturn:
        """Raise an error about this server."""
        msg = f"the MCP server `{self._server}` in the file is invalid: {text}"
        raise ConfigError(msg)


def _written(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (int, float)) else value


def _is_assignment(line: str) -> bool:
    name, equals, _ = line.strip().removeprefix("export ").partition("=")
    return bool(equals) and bool(_NAME(name.strip()))


def _assigned(line: str) -> tuple[str, str]:
    name, _, value = line.strip().removeprefix("export ").partition("=")
    value = value.strip()
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return name.strip(), value[1:-1] if is_quoted else value


class _Variables:
    """Substitutes `${…}`."""

    def __init__(self, inputs: Inputs, asked: Any, workspace: Path) -> None:
        self._inputs = inputs
        self._known: dict[str, str] = {}
        self._asked = {
            each["id"]: each
            for each in (asked if isinstance(asked, list) else ())
            if isinstance(each, Mapping) and isinstance(each.get("id"), str)
        }
        self._places = {
            "workspaceFolder": str(workspace),
            "workspaceFolderBasename": workspace.name,
            "userHome": str(Path.home()),
            "pathSeparator": os.sep,
            "/": os.sep,
        }

    def filled(self, text: str) -> str:
        """The text with variables substituted; values are not substituted again."""
        return _VARIABLE.sub(lambda found: self._value(found[1]), text)

    def _value(self, name: str) -> str:
        if name in self._places:
            return self._places[name]
        kind, colon, rest = name.partition(":")
        if kind == "input" and colon:
            return self._input(rest)
        if kind == "env" and colon:
            return self._variable(rest, None)
        variable, has_default, default = name.partition(":-")
        if _NAME(variable):
            return self._variable(variable, default if has_default else None)
        msg = "it uses an unsupported ${…}"
        raise ConfigError(msg)

    def _variable(self, name: str, default: str | None) -> str:
        found = os.environ.get(name) or default
        if found is None:
            shown = f" {name}" if _NAME(name) else ""
            msg = f"the environment variable{shown} is not set"
            raise ConfigError(msg)
        return found

    def _input(self, name: str) -> str:
        if name in self._known:
            return self._known[name]
        asked = self._asked.get(name, EMPTY)
        value: Any
        if callable(self._inputs):
            value = self._inputs(name, str(asked.get("description") or name))
        else:
            value = self._inputs.get(name, asked.get("default"))
        if not isinstance(value, str):
            shown = name if alias(name) == name else "id"
            msg = f'it needs an input: pass inputs={{"{shown}": …}}'
            raise ConfigError(msg)
        self._known[name] = value
        return value
