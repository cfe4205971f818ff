"""The same tasks on the command line with Dragoman and with `llm`: keys, seconds, what arrives.

`python -m benchmarks.terminal_side_by_side DRAGOMAN LLM` takes the paths of the two commands, each
installed in an environment of its own. Both talk to one scripted server on this machine, both have
a default model. Keys are the characters of the line that is typed, Enter included; seconds are the
median from Enter to the prompt. Whether the right thing arrived at the server, or on the screen, is
checked: a cell without it says what came instead.
"""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from threading import Thread
from time import monotonic, sleep
from typing import Any, NamedTuple

_ROUNDS = 5
_PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)
_TOOL = 'def weather(city: str) -> str:\n    "The weather in a city."\n    return "rain"\n'
_ON_TERMINAL = " --table"
"""What nobody types: on a terminal it is so anyway."""
_PASTE = "one\ntwo\nthree\nfour"


class Server(ThreadingHTTPServer):
    """Answers as Chat Completions do; keeps what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.came: list[dict[str, Any]] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
        """Say nothing."""

    def do_GET(self) -> None:
        self._send("image/png", _PNG)

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "image/png")
        self.end_headers()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert isinstance(self.server, Server)
        self.server.came.append(body)
        message = _message(body)
        head = {"id": "c1", "created": 1, "model": "m"}
        usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
        finish = "tool_calls" if "tool_calls" in message else "stop"
        if not body.get("stream"):
            choice = {"index": 0, "message": {"role": "assistant", **message},
                      "finish_reason": finish}  # fmt: skip
            whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
            self._send("application/json", json.dumps(whole).encode())
            return
        chunk = {**head, "object": "chat.completion.chunk"}
        choices = [{"index": 0, "delta": message, "finish_reason": None}]
        end = [{"index": 0, "delta": {}, "finish_reason": finish}]
        events = [{**chunk, "choices": choices}, {**chunk, "choices": end, "usage": usage}]
        text = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
        self._send("text/event-stream", text.encode())

    def _send(self, kind: str, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _message(body: dict[str, Any]) -> dict[str, Any]:
    if body.get("tools") and body["messages"][-1]["role"] != "tool":
        function = {"name": "weather", "arguments": '{"city": "Basel"}'}
        call = {"index": 0, "id": "call_1", "type": "function", "function": function}
        return {"content": None, "tool_calls": [call]}
    if body.get("response_format"):
        return {"content": '{"city": "Mostar", "bridges": 7}'}
    return {"content": "In **Mostar**, by the old bridge."}


class Task(NamedTuple):
    """Something to be done, with each of the two."""

    what: str
    dragoman: str
    llm: str
    is_done: Callable[[list[dict[str, Any]], str], bool]
    """By what came to the server, and what was printed."""


def _answered(_came: list[dict[str, Any]], printed: str) -> bool:
    return "Mostar" in printed


def _said(*texts: str) -> Callable[[list[dict[str, Any]], str], bool]:
    def is_done(came: list[dict[str, Any]], printed: str) -> bool:
        return bool(came) and all(each in json.dumps(came[-1]) for each in texts) and (
            "Mostar" in printed
        )  # fmt: skip

    return is_done


def _has(*texts: str) -> Callable[[list[dict[str, Any]], str], bool]:
    return lambda _came, printed: all(each in printed for each in texts)


def tasks(url: str) -> list[Task]:
    """What is to be done, in this order: some of it goes on from what was done before."""
    picture = f"{url}/bridge.png"
    return [
        Task("ask", "dragoman 'Where is it?'", "llm 'Where is it?'", _answered),
        Task("pipe a file in", "cat notes.txt | dragoman 'Sum up.'",
             "cat notes.txt | llm 'Sum up.'", _said("built in 1566", "Sum up.")),
        Task("attach an image", "dragoman 'What?' -a bridge.png",
             "llm 'What?' -a bridge.png", _said("image/png;base64")),
        Task("attach an image by its address", f"dragoman 'What?' -a {picture}",
             f"llm 'What?' -a {picture}", _said("image_url")),
        Task("a system prompt", "dragoman -s 'Be brief.' 'Where?'",
             "llm -s 'Be brief.' 'Where?'", _said("Be brief.")),
        Task("continue", "dragoman -c 'And then?'", "llm -c 'And then?'",
             _said("Where?", "And then?", "Be brief.")),
        Task("JSON by a schema", "dragoman --schema 'city, bridges int' 'One.'",
             "llm --schema 'city, bridges int' 'One.'", _has('"bridges"')),
        Task("save a template", "dragoman -s 'Be brief.' 'Sum up: $input' --save b",
             "llm -s 'Be brief.' 'Sum up: $input' --save b", lambda _came, _printed: True),
        Task("use it", "dragoman -t b 'A text.'", "llm -t b 'A text.'",
             _said("Sum up: A text.", "Be brief.")),
        Task("a tool from a Python file", "dragoman -T weather.py 'Rain?'",
             "llm --functions weather.py 'Rain?'", _said("rain")),
        Task("list what was asked", "dragoman history list --table", "llm logs -s -n 0",
             _has("Sum up")),
        Task("search it", "dragoman history search 1566 --table", "llm logs -q 1566",
             _has("1566")),
        Task("show the last as Markdown", "dragoman history show --markdown", "llm logs -n 1",
             _has("Mostar", "#")),
        Task("the last answer alone", "dragoman history show --answer", "llm logs -r",
             _has("In **Mostar**")),
        Task("an alias", "dragoman aliases set f m", "llm aliases set f m",
             lambda _came, _printed: True),
        Task("ask by it", "dragoman -m f 'Hi'", "llm -m f 'Hi'", _answered),
        Task("set a default model", "dragoman aliases set default m", "llm models default m",
             lambda _came, _printed: True),
        Task("tokens and cost", "dragoman -u 'Hi'", "llm -u 'Hi'", _has("9", "3")),
    ]  # fmt: skip


class Subject(NamedTuple):
    """One of the two, with a home of its own."""

    name: str
    folder: Path
    environment: dict[str, str]


def _subject(name: str, program: str, home: Path) -> Subject:
    folder = home / name
    folder.mkdir()
    (folder / "notes.txt").write_text("The bridge was built in 1566.\n")
    (folder / "bridge.png").write_bytes(_PNG)
    (folder / "weather.py").write_text(_TOOL)
    (folder / "llm").mkdir()
    environment = {
        "PATH": f"{Path(program).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder), "XDG_DATA_HOME": str(folder / "data"),
        "LLM_USER_PATH": str(folder / "llm"), "OPENAI_API_KEY": "sk-none", "PYTHONUTF8": "1",
        "TERM": "xterm-256color",
    }  # fmt: skip
    return Subject(name, folder, environment)


def _prepare(dragoman: Subject, llm: Subject, url: str) -> None:
    model = {"model_id": "m", "model_name": "m", "api_base": f"{url}/v1", "can_stream": True,
             "vision": True, "supports_schema": True, "supports_tools": True}  # fmt: skip
    (llm.folder / "llm" / "extra-openai-models.yaml").write_text(json.dumps([model]))
    _run(llm, "llm models default m")
    _run(dragoman, f"dragoman aliases set m openai-compatible:m --base-url {url}/v1")
    _run(dragoman, "dragoman aliases set default m")


def _run(subject: Subject, line: str) -> tuple[float, str]:
    begun = monotonic()
    done = subprocess.run(  # noqa: S602 - our own lines, which people type into a shell
        line, shell=True, cwd=subject.folder, env=subject.environment,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return monotonic() - begun, done.stdout + done.stderr


def _measured(subject: Subject, line: str, task: Task, server: Server) -> str:
    times: list[float] = []
    keys = len(line.removesuffix(_ON_TERMINAL)) + 1
    for _ in range(_ROUNDS):
        server.came.clear()
        took, printed = _run(subject, line)
        times.append(took)
        if not task.is_done(server.came, printed):
            return f"{keys} · not done: {' '.join(printed.split())[:60] or 'nothing'}"
    return f"{keys} · {median(times):.2f} s"


def _pasted(subject: Subject, line: str, server: Server) -> str:
    """How many requests a pasted block of four lines becomes in a chat."""
    server.came.clear()
    process, handle = pty.fork()
    if process == 0:
        os.chdir(subject.folder)
        os.execvpe("/bin/sh", ["sh", "-c", f"exec {line}"], subject.environment)  # noqa: S606
    _settle(handle, 4.0)
    os.write(handle, f"\x1b[200~{_PASTE}\x1b[201~".replace("\n", "\r").encode())
    _settle(handle, 1.0)
    os.write(handle, b"\r")
    _settle(handle, 3.0)
    os.write(handle, b"\x04")
    _settle(handle, 1.0)
    with suppress(ProcessLookupError):
        os.kill(process, 9)
    os.waitpid(process, 0)
    os.close(handle)
    asked = [each["messages"][-1]["content"] for each in server.came]
    whole = " (the block as it is)" if asked == [_PASTE] else ""
    return f"{len(line) + 2} · {len(asked)} request{'' if len(asked) == 1 else 's'}{whole}"


def _settle(handle: int, seconds: float) -> None:
    """Read what is shown, and answer what a terminal is asked: where its cursor is."""
    deadline = monotonic() + seconds
    while monotonic() < deadline:
        if select.select([handle], [], [], 0.1)[0]:
            try:
                shown = os.read(handle, 65536)
            except OSError:
                return
            if b"\x1b[6n" in shown:
                os.write(handle, b"\x1b[1;1R")
        else:
            sleep(0.05)


def main(dragoman: str, llm: str) -> None:
    """Print a table in Markdown."""
    server = Server()
    Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        ours = _subject("dragoman", dragoman, Path(folder))
        theirs = _subject("llm", llm, Path(folder))
        _prepare(ours, theirs, server.url)
        print(f"{_run(ours, 'dragoman --version')[1].strip()}, "
              f"{_run(theirs, 'llm --version')[1].strip()}\n")  # fmt: skip
        print("| task | `dragoman`: keys · time | `llm`: keys · time |\n|---|---|---|")
        for task in tasks(server.url):
            mine = _measured(ours, task.dragoman, task, server)
            other = _measured(theirs, task.llm, task, server)
            print(f"| {task.what} | {mine} | {other} |", flush=True)
        mine = _pasted(ours, "dragoman chat", server)
        other = _pasted(theirs, "llm chat", server)
        print(f"| paste four lines into a chat | {mine} | {other} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
