"""The programs in `examples/` run as their first lines say, without a key or a network."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import Overloaded
from dragoman.gateway.config.settings import GatewayConfig, Hop, Place, RouteSettings
from dragoman.gateway.middleware import Middleware
from dragoman.gateway.middleware.loading import hooks_of
from dragoman.history import MemoryStorage
from dragoman.testing import ScriptedModel
from tests.environment import PATIENCE
from tests.gateway.client_requests import ask, body_for, path_for, text_in
from tests.gateway.running import running

pytestmark = pytest.mark.whole

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
LONGEST = 120  # lines: people read a program before they copy it


def start(
    folder: Path, name: str, *arguments: str, typed: str = ""
) -> subprocess.CompletedProcess[str]:
    """An example, run to its end in a folder."""
    program = [sys.executable, str(ROOT / "examples" / name), *arguments]
    return subprocess.run(
        program, cwd=folder, input=typed, capture_output=True, text=True, check=False,
        timeout=PATIENCE,
    )  # fmt: skip


def output(folder: Path, name: str, *arguments: str, typed: str = "") -> str:
    """The output of an example, which must succeed."""
    done = start(folder, name, *arguments, typed=typed)
    assert done.returncode == 0, done.stderr
    return done.stdout


def load(name: str) -> Any:
    """An example as a module."""
    spec = spec_from_file_location(f"example_{name}", ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # types look their names up there
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
class TestEach:
    """Rules for every example."""

    def test_it_says_what_it_shows_and_how_to_run_it(self, example: Path) -> None:
        """In its docstring, with its own name."""
        text = ast.get_docstring(ast.parse(example.read_text())) or ""
        assert f"python examples/{example.name}" in text
        assert "Shows" in text

    def test_it_is_short(self, example: Path) -> None:
        """Examples are read before they are copied."""
        assert len(example.read_text().splitlines()) <= LONGEST

    def test_it_is_listed(self, example: Path) -> None:
        """In the README of the folder."""
        assert f"[`{example.name}`]({example.name})" in (ROOT / "examples/README.md").read_text()


def test_a_chat_continues_where_it_ended(tmp_path: Path) -> None:
    """Each line is answered, and the next process knows it."""
    assert output(tmp_path, "chat.py", typed="Hello\n\nBridge?\n") == "> Hello\n> > Bridge?\n> "
    again = output(tmp_path, "chat.py", typed="More\n")
    assert again == "(4 messages so far; the last one: Bridge?)\n> More\n> "


@pytest.mark.parametrize(("typed", "left"), [("y\n", 20), ("n\n", 0)])
def test_an_order_waits_for_approval(typed: str, left: int, tmp_path: Path) -> None:
    """The tool runs if the user approves."""
    said = output(tmp_path, "approval.py", typed=typed)
    assert f"'raincoat': {left}" in said
    assert ("The user said no." in said) is (left == 0)


def test_values_are_extracted(tmp_path: Path) -> None:
    """One for each document; wrong totals are sent back."""
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("Invoice")
    said = output(tmp_path, "extract.py", "a.txt", "b.txt").splitlines()
    assert [set(json.loads(line)) for line in said] == [
        {"number", "currency", "items", "total"}
    ] * 2
    extract = load("extract")
    wrong = extract.Invoice("1", "EUR", [extract.Item("hammock", 2, 40.0)], 70.0)
    with pytest.raises(extract.ToolRetry, match=r"80\.0"):
        extract.check_total(wrong, None)


def test_a_conversation_switches_providers(tmp_path: Path) -> None:
    """Both models answered, and both requests have the whole conversation."""
    said = output(tmp_path, "switch_provider.py")
    assert re.search(r"assistant +first +\['weather'\]", said)
    assert re.search(r"assistant +second +What should I wear", said)
    assert len(re.findall(r"\d{3} bytes, 0 losses", said)) == 2


def test_a_request_is_translated_and_its_answers_come_back(tmp_path: Path) -> None:
    """The loss is reported, the tool has its own name again, and the stream is complete."""
    said = output(tmp_path, "translate.py")
    assert "Loss(sampling.seed" in said
    assert said.count('"acme.weather"') == 1
    assert '"content":"No."' in said
    assert said.rstrip().endswith("data: [DONE]")


def test_conversations_are_imported_once(tmp_path: Path) -> None:
    """From each library; a second import changes nothing."""
    module = load("import_conversations")
    (tmp_path / "all.json").write_text(json.dumps([module.CHATGPT, module.CLAUDE]))
    (tmp_path / "chain.json").write_text(json.dumps(module.LANGCHAIN))
    arguments = ("all.json", "chain.json", "--store", "sqlite:///x.db", "--to", "openai-chat")
    first = output(tmp_path, "import_conversations.py", *arguments)
    hello = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}]
    assert [json.loads(line)["messages"] for line in first.splitlines()] == [hello] * 3
    assert output(tmp_path, "import_conversations.py", *arguments) == first


def test_a_service_streams_and_remembers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events as they arrive, an error as an event, and the conversation at the end."""
    pytest.importorskip("fastapi", reason="fastapi is not installed (extra: peers)")
    from starlette.testclient import TestClient

    monkeypatch.setenv("DRAGOMAN_HISTORY", f"sqlite:///{tmp_path}/chats.db")
    service = load("fastapi_chat")
    with TestClient(service.app) as client:
        answer = client.post("/chats/7", json={"text": "Hello there"})
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = [json.loads(line[6:]) for line in answer.text.splitlines() if line]
        assert events == [{"text": "Hello"}, {"text": " there"}, {"done": "stop"}]
        with service.agent.override(model=ScriptedModel([Overloaded("busy")])):
            failed = client.post("/chats/7", json={"text": "And now?"})
        assert "error" in json.loads(failed.text.splitlines()[-2][6:])
        said = [message["text"] for message in client.get("/chats/7").json()]
        assert said == ["Hello there", "Hello there", "And now?"]
        assert client.get("/chats/8").json() == []


def test_a_bot_answers_duplicates_once(tmp_path: Path) -> None:
    """A message that is delivered twice is answered once."""
    assert output(tmp_path, "slack_bot.py") == "[1.0] Hello\n[1.0] Are you there?\n"


async def test_a_bot_keeps_threads_separate() -> None:
    """Each gets its own messages; failures are reported, and bots are not answered."""
    said: list[tuple[str, str]] = []

    async def say(text: str, thread_ts: str) -> None:
        said.append((thread_ts, text))

    model = ScriptedModel(["One.", "Two.", Overloaded("busy")])
    bot = load("slack_bot").Bot(model, MemoryStorage())
    event = {"channel": "C1", "user": "U1", "text": "Hi"}
    await bot.on_message({**event, "ts": "1.0"}, say)
    await bot.on_message({**event, "ts": "2.0"}, say)
    await bot.on_message({**event, "ts": "2.5", "thread_ts": "2.0"}, say)
    await bot.on_message({**event, "ts": "3.0", "bot_id": "B1"}, say)
    assert [len(request.messages) for request in model.requests] == [1, 1, 3]
    assert said[:2] == [("1.0", "One."), ("2.0", "Two.")]
    assert said[2][1].startswith("Sorry")
    assert len(said) == 3


def test_answers_have_sources(tmp_path: Path) -> None:
    """Found by embeddings; quotations must be in the source."""
    assert "[0] “built by Mimar Hayruddin”" in output(tmp_path, "rag.py")
    rag = load("rag")

    class Run:
        deps = rag.Library(None, rag.SAMPLES)

    invented = rag.Answer("By nobody.", [rag.Source(0, "built by nobody")])
    with pytest.raises(rag.ToolRetry, match="quote it exactly"):
        rag.check_quotes(invented, Run())


def test_a_killed_run_is_resumed(tmp_path: Path) -> None:
    """No tool runs twice, and the outcome of the interrupted one stays unknown."""
    killed = start(tmp_path, "durable_run.py", "--crash")
    assert killed.returncode == 1
    assert "booking a hotel" in killed.stdout
    resumed = output(tmp_path, "durable_run.py")
    assert resumed.startswith("resuming\nbook_flight: flight booked\nbook_hotel: The outcome")
    assert "booking" not in resumed


def test_tools_of_a_server_are_used(tmp_path: Path) -> None:
    """The one that deletes needs approval."""
    said = output(tmp_path, "mcp_tools.py", typed="y\n")
    assert said.count("[y/N]") == 1
    assert said.endswith("Left: Basel\n")


def test_middleware_runs_without_a_server(tmp_path: Path) -> None:
    """The decisions of the hooks are printed."""
    said = output(tmp_path, "gateway_middleware.py").splitlines()
    assert [line.split(",")[0] for line in said] == [
        "11 characters: small",
        "20001 characters: large",
    ]


def test_middleware_in_a_gateway() -> None:
    """It routes and counts, and rejections are in the form of the client's API."""
    module = load("gateway_middleware")
    here = Place(name="here", model_url="echo:")
    routes = tuple(RouteSettings(model=name, to=(Hop(place=here),)) for name in ("small", "large"))
    with running(GatewayConfig(places={"here": here}, routes=routes)) as serving:
        serving.gateway.middleware = Middleware([hooks_of("example", module)], PATIENCE, "example")
        path = path_for("anthropic")
        answer = ask(serving.url, path, body_for("anthropic", "Is it safe?", model="auto"))
        assert text_in("anthropic", answer) == "Is it safe?"
        too_long = body_for("anthropic", "x" * (module.LONGEST + 1), model="auto")
        refused = ask(serving.url, path, too_long)
    assert (refused.status, refused.json["error"]["type"]) == (400, "invalid_request_error")
    assert module.tokens["anybody"] > 0


def test_costs_are_reported(tmp_path: Path) -> None:
    """By model and user; unknown costs are not zero."""
    said = output(tmp_path, "cost_report.py")
    assert re.search(r"0\.001200 USD +acme:large-1", said)
    assert re.search(r"0\.003900 USD +user ana", said)
    assert "unknown      nobody:unknown-1 (1500 tokens)" in said
