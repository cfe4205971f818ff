"""Runs the Python blocks of a page that need another library: `python -m tests.peer_pages PAGE`.

It is a separate process, since those libraries warn, patch and leave connections open.
`PEER_SERVER` is the address of a gateway that answers for every provider; the libraries find it by
their own variables, and Dragoman's providers are redirected to it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

from msgspec.structs import force_setattr

from dragoman import provider
from tests.test_docs import ROOT, Block, blocks, run

MARK = "tests/test_peer_pages.py"


def peer_blocks(page: Path) -> list[Block]:
    """The Python blocks to run: those that the other test skips, and those it runs."""
    found = [block for block in blocks(page.read_text()) if block.language == "python"]
    return [block for block in found if block.not_run is None or MARK in block.not_run]


def is_for_peers(page: Path) -> bool:
    """Whether a page has such blocks."""
    return any(block.not_run is not None for block in peer_blocks(page))


def environment(url: str) -> dict[str, str]:
    """The variables by which libraries find a server and a key."""
    return {
        "PEER_SERVER": url,
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": "any",
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "any",
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_API_KEY": "any",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # otherwise it is downloaded
        "LANGSMITH_TRACING": "false",
    }


def redirect(url: str) -> None:
    """Redirect our providers to that server, too: they read no such variables."""
    for name, path in (("openai", "/v1"), ("anthropic", ""), ("google", "")):
        force_setattr(provider(name), "base_url", url + path)


def main(name: str) -> None:
    """Run a page."""
    redirect(os.environ["PEER_SERVER"])
    page = ROOT / name
    module = ModuleType("documentation")  # types in the examples look their names up in it
    sys.modules[module.__name__] = module
    run(name, peer_blocks(page), module.__dict__)


if __name__ == "__main__":
    main(sys.argv[1])
