"""Third-party clients use our server: the MCP Inspector, Claude Code and opencode.

Each is pinned and installed from npm into a temporary folder; `DRAGOMAN_TEST_NPM` names one that
is kept. Claude Code and opencode need a model: a script on loopback that calls our tool.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman import ChatHistory, SessionIdentity
from tests.cli.loopback import Came, Goes, serving
from tests.mcp.serving.processes import SERVER, listening
from tests.npm import CLAUDE_CODE, INSPECTOR, OPENCODE, Npm, programs

pytestmark = pytest.mark.slow

_TIMEOUT = 300
_MILLISECONDS = "240000"  # for the server to start: no client's own timeout decides a test
_PATIENT = ("--connect-timeout", _MILLISECONDS)
ONE = SessionIdentity(agent="chat", chat="one")
ANSWER = "The bridge is in Mostar."


@pytest.fixture(scope="session")
def npm(tmp_path_factory: pytest.TempPathFactory) -> Npm:
    """Programs from npm."""
    return programs(tmp_path_factory.mktemp("npm"))


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store with a conversation."""
    url = f"sqlite:///{tmp_path}/chats.db"
    with ChatHistory.open_sync(ONE, url) as history:
        history.extend(["Where is the Old Bridge?", "In Mostar."])
    return url


def run(*command: str | Path, folder: Path, **env: str) -> str:
    """The output of a program, which has its own environment and home."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    clean = {"PATH": os.environ["PATH"], "HOME": str(home), **env}
    done = subprocess.run(
        [str(word) for word in command], env=clean, cwd=home, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, timeout=_TIMEOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


# --- the MCP Inspector


class Inspector:
    """Its command line, which sends one request and prints the answer."""

    def __init__(self, program: Path, folder: Path, *target: str) -> None:
        self._command: tuple[str | Path, ...] = (program, "--cli", *_PATIENT, *target)
        self._folder = folder

    def __call__(self, method: str, *options: str) -> Any:
        """The result of a request."""
        return json.loads(run(*self._command, "--method", method, *options, folder=self._folder))


@pytest.fixture(params=["stdio", "http"])
def inspector(
    request: pytest.FixtureRequest, npm: Npm, url: str, tmp_path: Path
) -> Iterator[Inspector]:
    """The Inspector, connected over each transport."""
    program = npm(INSPECTOR, "mcp-inspector")
    options = ("--store", url, "--write")
    if request.param == "stdio":
        path = f"PYTHONPATH={os.environ['PYTHONPATH']}"
        target = ("-e", path, sys.executable, *SERVER, *options)
        yield Inspector(program, tmp_path, *target)
        return
    with listening(*options, "--http", "127.0.0.1:0") as (_, address):
        yield Inspector(program, tmp_path, address, "--transport", "http")


def test_the_inspector_accepts_the_tools(inspector: Inspector) -> None:
    """`--strict` fails if a schema would be a problem for some model's API."""
    listed = inspector("tools/list", "--strict")["tools"]
    assert "append_message" in {tool["name"] for tool in listed}


def test_the_inspector_uses_tools_resources_and_prompts(inspector: Inspector) -> None:
    """Each gives its result."""
    arguments = ("--tool-arg", "session=chat/one", "limit=2")
    result = inspector("tools/call", "--tool-name", "read_session", *arguments)
    assert "> In Mostar." in result["structuredContent"]["text"]
    (listed,) = inspector("resources/list")["resources"]
    assert listed["uri"] == f"dragoman://session/{ONE.digest}"
    (contents,) = inspector("resources/read", "--uri", listed["uri"])["contents"]
    assert "> In Mostar." in contents["text"]
    asked = ("--prompt-name", "continue_conversation", "--prompt-args", "session=chat/one")
    assert "> In Mostar." in json.dumps(inspector("prompts/get", *asked), ensure_ascii=False)
    templates = inspector("resources/templates/list")["resourceTemplates"]
    assert len(templates) == 2


def test_the_inspector_writes(inspector: Inspector, url: str) -> None:
    """The added message is in the store."""
    arguments = ("--tool-arg", "session=chat/one", "text=Thanks.")
    result = inspector("tools/call", "--tool-name", "append_message", *arguments)
    with ChatHistory.open_sync(ONE, url) as history:
        last = history.last
    assert last is not None
    assert (last.id, last.text) == (result["structuredContent"]["message_id"], "Thanks.")


# --- assistants, with a scripted model


class Model:
    """Speaks Anthropic's dialect: calls a tool once, then answers; keeps the tool's result."""

    def __init__(self, tool: str, **arguments: Any) -> None:
        self._call = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": arguments}
        self.results: list[str] = []
        self.offered: set[str] = set()

    def __call__(self, came: Came) -> Goes:
        """Its answer to a request."""
        if "count_tokens" in came.path:
            return Goes({"input_tokens": 1})
        if "/messages" not in came.path:
            return Goes({})
        body = came.json
        last = body["messages"][-1]["content"]
        blocks = last if isinstance(last, list) else []
        results = [block for block in blocks if block.get("type") == "tool_result"]
        self.results += [json.dumps(each["content"], ensure_ascii=False) for each in results]
        tools = {tool["name"] for tool in body.get("tools", [])}
        self.offered |= tools
        if tools and not results:
            return _streamed(self._call, "tool_use")
        return _streamed({"type": "text", "text": ANSWER}, "end_turn")


def _streamed(block: dict[str, Any], stop: str) -> Goes:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message: Any = {"id": "msg_1", "type": "message", "role": "assistant", "content": [],
               "model": "claude-sonnet-4-5", "stop_reason": None, "stop_sequence": None,
               "usage": usage}  # fmt: skip
    is_text = block["type"] == "text"
    begun = {**block, "text": ""} if is_text else {**block, "input": {}}
    grown = (
        {"type": "text_delta", "text": block["text"]}
        if is_text
        else {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    )
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": begun},
        {"type": "content_block_delta", "index": 0, "delta": grown},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None},
         "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]  # fmt: skip
    pieces = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
    return Goes(pieces=[piece.encode() for piece in pieces])


def test_claude_code_reads_a_conversation(npm: Npm, url: str, tmp_path: Path) -> None:
    """With the read-only configuration of docs/guides/mcp-server.md."""
    program = npm(CLAUDE_CODE, "claude")
    env = {"PYTHONPATH": os.environ["PYTHONPATH"]}
    server = {"command": sys.executable, "args": [*SERVER, "--store", url], "env": env}
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"dragoman": server}}))
    tool = "mcp__dragoman__read_session"
    model = Model(tool, session="chat/one")
    with serving(model) as vendor:
        printed = run(
            program, "-p", "What did I ask about the bridge?", "--mcp-config", config,
            "--strict-mcp-config", "--allowedTools", tool, "--model", "claude-sonnet-4-5",
            folder=tmp_path, ANTHROPIC_BASE_URL=vendor.url, ANTHROPIC_API_KEY="none",
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1", DISABLE_AUTOUPDATER="1",
            ENABLE_TOOL_SEARCH="false", MCP_TIMEOUT=_MILLISECONDS,
        )  # fmt: skip
    assert ANSWER in printed
    assert {"mcp__dragoman__search", "mcp__dragoman__list_sessions"} <= model.offered
    assert "mcp__dragoman__append_message" not in model.offered
    assert any("> Where is the Old Bridge?" in result for result in model.results)


def test_opencode_adds_to_a_conversation(npm: Npm, url: str, tmp_path: Path) -> None:
    """With `--write`: the message that its model added is in the store."""
    program = npm(OPENCODE, "opencode")
    model = Model("dragoman_append_message", session="chat/one", text="Noted by opencode.")
    with serving(model) as vendor:
        options = {"baseURL": f"{vendor.url}/v1", "apiKey": "none"}
        config: dict[str, Any] = {
            "model": "anthropic/claude-sonnet-4-5",
            "small_model": "anthropic/claude-sonnet-4-5",
            "autoupdate": False,
            "share": "disabled",
            "permission": {"*": "allow"},
            "provider": {"anthropic": {"options": options}},
            "mcp": {
                "dragoman": {
                    "type": "local",
                    "command": [sys.executable, *SERVER, "--store", url, "--write"],
                    "environment": {"PYTHONPATH": os.environ["PYTHONPATH"]},
                    "timeout": int(_MILLISECONDS),
                }
            },
        }
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "opencode.json").write_text(json.dumps(config))
        printed = run(
            program, "run", "Note this.", folder=tmp_path, OPENCODE_DISABLE_MODELS_FETCH="1",
            OPENCODE_DISABLE_AUTOUPDATE="1", OPENCODE_DISABLE_LSP_DOWNLOAD="1",
            OPENCODE_DISABLE_DEFAULT_PLUGINS="1",
        )  # fmt: skip
    assert ANSWER in printed
    with ChatHistory.open_sync(ONE, url) as history:
        last = history.last
    assert last is not None
    assert last.text == "Noted by opencode."
    assert any(last.id in result for result in model.results)
