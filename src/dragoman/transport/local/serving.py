"""The process that runs llama.cpp's server, started by `servers` as a separate script.

It is not a thread because loading holds the interpreter's lock for seconds, the library installs
its own Ctrl-C handler, and a bad model file ends the whole process.

The first line of stdin has the settings, as JSON; the answer is one line on stdout. When stdin
ends, the parent process is gone, and this one exits. Nothing of Dragoman is imported.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from importlib import import_module
from typing import Any

_POLL = 1.0


def main() -> None:
    """Load a model, report its address, and serve until stdin is closed."""
    out = os.dup(1)
    os.dup2(2, 1)  # the library's own output must not mix with the answer
    settings = json.loads(sys.stdin.buffer.readline())
    sys.path[:] = settings["path"]
    # A process forked from our parent may hold the other end of stdin: watch the parent, too.
    threading.Thread(target=_watch, args=(settings["parent"],), daemon=True).start()
    _end_with_stdin()
    server: Any = None
    try:
        server = _served(settings)
        answer = {"address": server.listening_address}
    except ImportError:
        answer = {"problem": "missing"}
    except AttributeError:
        answer = {"problem": "strange"}
    except Exception:  # noqa: BLE001 - its text may quote; the parent has one of its own
        answer = {"problem": "unloadable"}
    os.write(out, json.dumps(answer).encode() + b"\n")
    os.close(out)
    if server is not None:
        sys.stdin.buffer.read()
    os._exit(0)  # nothing to clean up


def _served(settings: dict[str, Any]) -> Any:
    # By name: type checkers' results must not depend on whether it is installed.
    xllamacpp: Any = import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = settings["model"]
    params.model_alias = [settings["alias"]]
    # The names follow llama.cpp's, which change.
    if hasattr(params, "hostnames"):
        params.hostnames = ["127.0.0.1"]
    else:
        params.hostname = "127.0.0.1"
    params.port = 0
    params.api_keys = [settings["key"]]
    setattr(params, "ui" if hasattr(params, "ui") else "webui", False)
    params.endpoint_slots = False
    params.verbosity = 3 if settings["verbose"] else -1
    params.n_ctx = settings["context"]
    params.n_parallel = settings["parallel"]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
    params.embedding = settings["embeddings"]
    if settings["template"] is not None:
        params.chat_template = settings["template"]
    return xllamacpp.Server(params)


def _end_with_stdin() -> None:
    """Let the system end us with stdin: none of our threads runs while a model is loading."""
    if sys.platform == "linux":
        import fcntl

        fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)  # SIGIO


def _watch(parent: int) -> None:
    # On Windows the number stays the same, and stdin must suffice.
    while sys.platform == "win32" or os.getppid() == parent:
        time.sleep(_POLL)
    os._exit(0)


if __name__ == "__main__":
    main()
