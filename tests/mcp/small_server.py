"""A small MCP server without the SDK, which starts in no time, crashes and hangs on request."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

TOOLS = ("echo", "crash", "hang", "environment", "pid", "complain", "drone", "large")
MODE = sys.argv[1] if len(sys.argv) > 1 else ""


def say(message: dict[str, Any]) -> None:
    """One message on a line."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def result_of(name: str, arguments: dict[str, Any]) -> str:
    """What a tool returns."""
    if name == "crash":
        sys.stderr.write("Traceback: it broke\n\x1b[31mred\x1b[0m\n")
        sys.stderr.flush()
        os._exit(3)
    if name == "hang":
        while True:
            time.sleep(60)
    while name == "drone":  # a line without an end
        sys.stdout.write("x" * 65_536)
    if name == "large":
        return "é" * int(arguments["size"])
    if name == "environment":
        return json.dumps(dict(os.environ))
    if name == "complain":
        sys.stderr.write("x" * 10_000_000 + "\n")
        sys.stderr.flush()
    return str(os.getpid()) if name == "pid" else str(arguments.get("word", ""))


def answer(message: dict[str, Any]) -> None:
    """Answer a request."""
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        info = {"name": "small", "version": "1"}
        say({"id": message["id"], "result": {
            "protocolVersion": params["protocolVersion"], "serverInfo": info,
            "capabilities": {"tools": {}},
        }})  # fmt: skip
    elif method == "tools/list":
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
        say({"id": message["id"], "result": {"tools": tools}})
    elif method == "tools/call":
        text = result_of(params["name"], params.get("arguments") or {})
        say({"id": message["id"], "result": {"content": [{"type": "text", "text": text}]}})
    elif "id" in message:
        say({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})


if MODE == "dies":
    sys.stderr.write("no licence found, key sk-secret-1234\n")
    sys.exit(1)
if MODE == "hangs":
    sys.stderr.write("waiting for nobody\n")
    sys.stderr.flush()
    time.sleep(600)
if MODE == "chatters":
    sys.stdout.write("Server started on stdio\n")
for line in sys.stdin:
    answer(json.loads(line))
if MODE == "stubborn":  # it should end now
    time.sleep(600)
