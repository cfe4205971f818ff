"""A chat service on FastAPI: stored conversations, answers as server-sent events.

    pip install fastapi uvicorn dragoman
    python examples/fastapi_chat.py                              # echoes, needs no key
    DRAGOMAN_MODEL=anthropic:claude-sonnet-4-5 python examples/fastapi_chat.py

    curl -N localhost:8000/chats/7 -H 'content-type: application/json' -d '{"text": "Hello there"}'
    curl localhost:8000/chats/7

Shows one agent and one store for all requests, and streaming. If a client disconnects early, the
messages that were complete by then are stored. Replace `current_user` with your authentication.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from dragoman import Agent, ChatHistory, DragomanError, SessionIdentity
from dragoman.history import Storage, open_storage

STORE = os.environ.get("DRAGOMAN_HISTORY", "sqlite:///chats.db")
agent = Agent(os.environ.get("DRAGOMAN_MODEL", "echo:"), system="Be brief.")


@asynccontextmanager
async def lifespan(_app: FastAPI) -> AsyncGenerator[dict[str, Storage]]:
    """Open the store once; close it and the agent's connections at the end."""
    async with agent, open_storage(STORE) as storage:
        yield {"storage": storage}


app = FastAPI(lifespan=lifespan)


class Prompt(BaseModel):
    """The user's message."""

    text: str


def current_user() -> str:
    """A placeholder for your authentication."""
    return "ana"


def history_of(chat: str, request: Request, user: Annotated[str, Depends(current_user)]) -> Any:
    """The user's chat of that name, not opened yet."""
    return ChatHistory(SessionIdentity(chat=chat, user=user), request.state.storage)


History = Annotated[Any, Depends(history_of)]


@app.get("/chats/{chat}")  # noqa: FAST003 - `history_of` takes it
async def read(history: History) -> list[dict[str, str]]:
    """The conversation so far."""
    async with history:
        messages = await history.messages()
    return [{"role": message.role.value, "text": message.text} for message in messages]


@app.post("/chats/{chat}")  # noqa: FAST003 - as above
async def send(prompt: Prompt, history: History) -> StreamingResponse:
    """The answer as events: `{"text": …}` for each piece, then `{"done": …}` or `{"error": …}`."""
    return StreamingResponse(answer(history, prompt.text), media_type="text/event-stream")


async def answer(history: ChatHistory, text: str) -> AsyncIterator[str]:
    """Ask the agent; leaving the stream stops the model and its tools."""
    try:
        async with history, agent.stream(text, history=history) as stream:
            async for chunk in stream:
                if chunk.output:
                    yield event(text=chunk.output)
        yield event(done=stream.result.finish)
    except DragomanError as error:  # its text contains no message content and no key
        yield event(error=str(error))


def event(**data: object) -> str:
    """One server-sent event."""
    return f"data: {json.dumps(data)}\n\n"


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app, port=8000)
