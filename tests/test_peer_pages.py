"""Recipes and comparisons: their code for other libraries runs against a local server.

The blocks are marked `<!-- not run: needs … (tests/test_peer_pages.py runs it) -->`, since
`test_docs.py` runs without those libraries and without a server. A page whose libraries are not
installed is skipped; `make test-all` has the extra `peers`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from dragoman import FinishReason, Message, Request, Response, ToolCall, Usage
from dragoman.agent.made_up import made_up
from dragoman.gateway.config.settings import Place
from dragoman.gateway.middleware import Info, Middleware
from dragoman.gateway.middleware.loading import hooks_of
from dragoman.model.responses import Choice
from tests.environment import PATIENCE
from tests.gateway.running import routed, running
from tests.peer_pages import MARK, environment, is_for_peers, peer_blocks
from tests.test_docs import ROOT, blocks

PAGES = [page for page in sorted(ROOT.glob("docs/**/*.md")) if is_for_peers(page)]
IMPORT = re.compile(r"^\s*(?:from|import) (\w+)", re.MULTILINE)


async def before(request: Request, info: Info) -> Response:  # noqa: ARG001 - the gateway gives both
    """An answer in place of a model: a call of the first tool, a value, or a text."""
    last = request.messages[-1]
    if last.tool_results:
        said = Message.assistant(f"It says: {last.tool_results[0].text}")
    elif request.output is not None and request.output.schema is not None:
        said = Message.assistant(json.dumps(made_up(request.output.schema, "the answer")))
    elif request.tools and request.tools[0].name == "weather":
        call = ToolCall.create("call_1", "weather", {"city": "Mostar"})
        said = Message.assistant(tool_calls=[call])
    elif request.tools:
        tool = request.tools[0]
        arguments = made_up(getattr(tool, "parameters", {}), "the arguments")
        said = Message.assistant(tool_calls=[ToolCall.create("call_1", tool.name, arguments)])
    else:
        said = Message.assistant("The Old Bridge is in Mostar.")
    finish = FinishReason.TOOL_CALLS if said.tool_calls else FinishReason.STOP
    usage = Usage(input=10, output=5)
    return Response(choices=(Choice(0, said, finish),), usage=usage, model=request.model)


class Answering:
    """The middleware that answers in place of a model."""

    before = staticmethod(before)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a gateway that speaks every API."""
    with running(routed(Place(name="here", model_url="echo:"))) as serving:
        hooks = hooks_of("answering", Answering)
        serving.gateway.middleware = Middleware([hooks], PATIENCE, "answering")
        yield serving.url


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT / "docs").as_posix())
def test_the_page_runs(page: Path, server: str, tmp_path: Path) -> None:
    """Before and after give the same result, as the page asserts."""
    code = "\n".join(block.code for block in peer_blocks(page))
    absent = [name for name in sorted(set(IMPORT.findall(code))) if find_spec(name) is None]
    if absent:  # searched for, not imported: a package that is installed and broken is a failure
        pytest.skip(f"{', '.join(absent)} is not installed (extra: peers)")
    done = subprocess.run(
        [sys.executable, "-m", "tests.peer_pages", page.relative_to(ROOT).as_posix()],
        cwd=tmp_path,
        env={**os.environ, **environment(server)},
        capture_output=True,
        text=True,
        check=False,
        timeout=4 * PATIENCE,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_there_are_such_pages() -> None:
    """If the marker changed, nothing would be run unnoticed."""
    assert len(PAGES) >= 5


def test_every_comparison_is_run() -> None:
    """No block of a comparison is skipped by both tests."""
    for page in ROOT.glob("docs/compare/*.md"):
        reasons = [block.not_run for block in blocks(page.read_text())]
        assert all(reason is None or MARK in reason for reason in reasons), page
