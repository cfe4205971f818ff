"""The extra `mcp`: the error without it, and its import cost."""

from __future__ import annotations

import os
import subprocess
import sys


def told(code: str, absent: str = "") -> str:
    """The output of a new Python in which a package can't be imported."""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "DRAGOMAN_TEST_ABSENT": absent},
    )  # fmt: skip
    return run.stdout + run.stderr


def test_without_the_extra_the_error_says_what_to_install() -> None:
    """Our own error, on import and in the chat."""
    said = told("from dragoman.mcp import MCPServer", absent="mcp")
    assert "ConfigError: dragoman.mcp needs the mcp extra: pip install 'dragoman[mcp]'" in said
    main = "import runpy, sys; sys.argv[1:] = ['chat', 'echo:', '--mcp', 'x']; "
    said = told(main + "runpy.run_module('dragoman', run_name='__main__')", absent="mcp")
    assert "pip install 'dragoman[mcp]'" in said


def test_agents_and_the_commands_do_not_import_it() -> None:
    """Programs without servers don't pay for it."""
    code = "import sys, dragoman, dragoman.agent.agent, dragoman.cli.chat.chatting;"
    assert told(code + " print([n for n in sys.modules if n.startswith(('mcp', 'httpx2'))])") == (
        "[]\n"
    )


def test_a_server_imports_the_sdk_when_it_is_created() -> None:
    """Not when the package is imported."""
    code = "import sys, dragoman.mcp; print('mcp' in sys.modules); dragoman.mcp.MCPServer;"
    assert told(code + " print('mcp' in sys.modules)") == "False\nTrue\n"
