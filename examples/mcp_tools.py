"""An agent with the tools of an MCP server; calls that change something need approval.

    pip install 'dragoman[mcp]'
    python examples/mcp_tools.py                                 # uses a script, needs no key
    python examples/mcp_tools.py --model openai:gpt-5

Shows a server among the tools of an agent, and how to choose which of its calls need approval. The
server is this same file (`--serve`), written with the official SDK. Another one would be
`MCPServer.stdio("npx", "-y", "@modelcontextprotocol/server-filesystem", ".")`.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

from dragoman import Agent, Message, Model, RunContext, ToolCall
from dragoman.mcp import MCPServer
from dragoman.testing import ScriptedModel


def serve() -> None:
    """Run the server: two tools, on standard input and output."""
    from mcp.server.mcpserver import MCPServer as Server

    server = Server("weather")
    stations = {"Basel", "Chur"}

    @server.tool()
    def list_stations() -> str:
        """All weather stations."""
        return ", ".join(sorted(stations))

    @server.tool()
    def delete_station(name: str) -> str:
        """Delete a weather station."""
        stations.discard(name)
        return f"{name} is deleted"

    server.run()


def script() -> Model:
    """A script in place of a model, used without `--model`."""
    steps = [("list_stations", {}), ("delete_station", {"name": "Chur"}), ("list_stations", {})]
    calls = [ToolCall.create(f"call_{n}", *step) for n, step in enumerate(steps)]
    return ScriptedModel(
        [
            *(Message.assistant(tool_calls=[call]) for call in calls),
            lambda request: f"Left: {request.messages[-1].tool_results[0].text}",
        ]
    )


async def ask(call: ToolCall, run: RunContext) -> bool | str:  # noqa: ARG001 - the agent gives both
    """Ask the user at the terminal; a string rejects the call with that reason."""
    answer = await asyncio.to_thread(input, f"Run {call.name}({dict(call.arguments)})? [y/N] ")
    return True if answer.strip().lower() == "y" else "The user said no."


async def main() -> None:
    """Ask an agent that has the server's tools."""
    parser = argparse.ArgumentParser(description="An agent with an MCP server.")
    parser.add_argument("--model", help="provider:model (default: a script)")
    parser.add_argument("--serve", action="store_true", help="run the server")
    options = parser.parse_args()

    server = MCPServer.stdio(
        sys.executable, __file__, "--serve", requires_approval={"delete_station"}
    )
    async with Agent(options.model or script(), tools=[server], approve=ask) as agent:
        result = await agent.send("Delete the station in Chur. Which ones are left?")
    print(result.output)


if __name__ == "__main__":
    if "--serve" in sys.argv:
        serve()
    else:
        asyncio.run(main())
