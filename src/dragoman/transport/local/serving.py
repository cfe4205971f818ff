"""The process that runs llama.cpp's server. Started by `servers`, as a script of its own.

Why not a thread: loading holds the interpreter's lock for seconds, the library takes Ctrl-C for
itself, and a model that it can't digest ends the whole process.

The first line of stdin is the settings, as JSON; the answer is a line on stdout. When stdin ends,
whoever started us is gone, however that happened, and so are we. Nothing of Dragoman is imported.
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
    """Load a model, tell where it is served, and stay until nobody listens."""
    out = os.dup(1)
    os.dup2(2, 1)  # whatever the library prints is no answer
    settings = json.loads(sys.stdin.buffer.readline())
    sys.path[:] = settings["path"]
    # A process that forked off our parent may hold the other end of stdin: look for the parent too.
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
    os._exit(0)  # there is nothing to put in order


def _served(settings: dict[str, Any]) -> Any:
    # By name: type checkers would say one thing where it is installed and another where it is not.
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
    """Let the system end us when stdin does: no thread of ours runs while a model is loaded."""
    if sys.platform == "linux":
        import fcntl

        fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)  # SIGIO


def _watch(parent: int) -> None:
    # The number stays the same on Windows, where stdin has to do.
    while sys.platform == "win32" or os.getppid() == parent:
        time.sleep(_POLL)
    os._exit(0)


if __name__ == "__main__":
    main()
