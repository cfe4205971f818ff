"""The state behind the mock API: conversations with branches, requests, keys, and a scripted model."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import Any

from aiohttp import web

from tests.gateway.page import mock_data as data


class Mock:
    """All that the page can ask for, in memory."""

    def __init__(
        self, *, conversations: int = 10_000, pace: float = 0.01, needs_key: bool = False
    ) -> None:
        self.pace = pace
        """Seconds between two pieces of an answer; 0 makes tests quick."""
        self.needs_key = needs_key
        self.rows = data.conversations(conversations)
        self.threads: dict[str, dict[int, list[dict[str, Any]]]] = {"c0": {0: data.showcase()}}
        if conversations > 1:
            self.threads["c1"] = {0: data.long_conversation(2000)}
        self.requests = [data.request(number, time.time() - number * 4) for number in range(2000)]
        self.keys = data.keys()
        self.asked: list[tuple[str, str, Any]] = []
        """Method, path and body of every request to the API."""
        self.approvals: dict[str, asyncio.Future[bool]] = {}
        self.stops: dict[str, asyncio.Event] = {}
        self.numbers = itertools.count(100)
        self.answer: list[str] | None = None
        """What the model says, in pieces; None: the usual."""
        self.uses_tool = True

    # --- conversations

    def thread(self, name: str) -> dict[int, list[dict[str, Any]]]:
        """The branches of a conversation."""
        if name not in self.threads and not any(row["id"] == name for row in self.rows):
            raise web.HTTPNotFound
        return self.threads.setdefault(name, {0: data.showcase()[:2]})

    def view(self, name: str, branch: int, before: str | None, limit: int) -> dict[str, Any]:
        """A page of a conversation, as the API tells it."""
        branches = self.thread(name)
        messages = branches[branch]
        end = next((i for i, one in enumerate(messages) if one["id"] == before), len(messages))
        shown = messages[max(0, end - limit) : end]
        row = next((row for row in self.rows if row["id"] == name), {"title": "", "pinned": False})
        return {
            "id": name, "title": row["title"], "pinned": row["pinned"], "tags": row.get("tags", []), "branch": branch,
            "branches": [{"number": number, "parent": 0, "from_message": None} for number in branches],
            "messages": [self._with_siblings(branches, messages, one) for one in shown], "has_more": end > limit,
        }  # fmt: skip

    @staticmethod
    def _with_siblings(branches: dict[int, list[Any]], messages: list[Any], one: Any) -> Any:
        at = messages.index(one)
        before = [each["id"] for each in messages[:at]]
        found: dict[str, int] = {}
        for number, other in branches.items():
            if len(other) > at and [each["id"] for each in other[:at]] == before:
                found.setdefault(other[at]["id"], number)
        if len(found) < 2:
            return one
        return {**one, "siblings": list(found.values()), "sibling": list(found).index(one["id"])}

    def page(self, query: str, cursor: str, limit: int) -> dict[str, Any]:
        """A page of the list, or of the hits of a search."""
        rows = self.rows
        if query:
            found = [row for row in rows if query.lower() in row["title"].lower()]
            at = "the words around "
            rows = [
                {
                    **row,
                    "snippet": f"{at}{query} in a message",
                    "marks": [[len(at), len(at) + len(query)]],
                    "message_id": "m2",
                }
                for row in found
            ]
        else:
            rows = sorted(rows, key=lambda row: not row["pinned"])
        start = int(cursor or 0)
        end = start + limit
        return {
            "items": rows[start:end],
            "cursor": str(end) if end < len(rows) else None,
            "total": len(rows),
        }

    # --- talking

    async def talk(self, body: dict[str, Any], emit: Any) -> None:
        """Answer a message, event by event."""
        name = body["conversation"] or f"n{next(self.numbers)}"
        if not body["conversation"]:
            self.rows.insert(
                0,
                {
                    "id": name,
                    "title": body["text"][:40],
                    "first_line": body["text"],
                    "model": body["model"],
                    "messages": 2,
                    "updated_at": time.time(),
                    "pinned": False,
                },
            )
            self.threads[name] = {0: []}
        branches = self.thread(name)
        branch = body.get("branch") or 0
        messages, after = branches[branch], body.get("after")
        if after is not None:
            end = next((i + 1 for i, one in enumerate(messages) if one["id"] == after), 0)
            branch = max(branches) + 1
            messages = branches[branch] = messages[:end]
        run = f"run{next(self.numbers)}"
        self.stops[run] = asyncio.Event()
        await emit({"type": "run", "run": run, "conversation": name, "branch": branch})
        if not body.get("retry"):
            parts = [data.text(body["text"])] if body["text"] else []
            parts += [
                {
                    "kind": "image" if one["mime"].startswith("image/") else "file",
                    "name": one["name"],
                    "mime": one["mime"],
                    "size": len(one["data"]) * 3 // 4,
                    "url": "media/window",
                }
                for one in body["attachments"]
            ]
            messages.append(self._view("user", parts))
            await emit({"type": "message", "view": messages[-1]})
        await emit(
            {
                "type": "sent",
                "dialect": "anthropic",
                "losses": [],
                "repairs": [{"rule": "W83"}],
                "omitted": [],
            }
        )
        if body.get("tools") and self.uses_tool and "weather" in body["text"]:
            await self._tool_round(messages, body["model"], emit)
        await self._say(run, messages, body["model"], emit)

    def _view(self, role: str, parts: list[Any], **more: Any) -> dict[str, Any]:
        return {
            "id": f"x{next(self.numbers)}",
            "role": role,
            "parts": parts,
            "created_at": time.time(),
            **more,
        }

    async def _tool_round(self, messages: list[Any], model: str, emit: Any) -> None:
        call = {
            "call_id": f"call{next(self.numbers)}",
            "name": "weather",
            "arguments": '{"city": "Trieste"}',
        }
        await emit({"type": "part", "index": 0, "kind": "call", "name": "weather"})
        await emit({"type": "delta", "index": 0, "text": call["arguments"]})
        await emit({"type": "call", "index": 0, "call": call})
        waiting = self.approvals[call["call_id"]] = asyncio.get_running_loop().create_future()
        await emit({"type": "approval", **call})
        allowed = await waiting
        messages.append(
            self._view("assistant", [{"kind": "call", **call}], model=model, finish="tool_calls")
        )
        await emit({"type": "message", "view": messages[-1]})
        result = {
            "kind": "result",
            "call_id": call["call_id"],
            "text": '{"temperature": 17}' if allowed else "The user refused.",
            "is_error": not allowed,
        }
        messages.append(self._view("tool", [result]))
        await emit({"type": "result", "view": messages[-1]})

    async def _say(self, run: str, messages: list[Any], model: str, emit: Any) -> None:
        thought = "The user asks something. An answer with a table and a formula will do."
        pieces = (
            self.answer
            if self.answer is not None
            else [data.RICH[i : i + 12] for i in range(0, len(data.RICH), 12)]
        )
        parts, finish = [{"kind": "thinking", "text": ""}, data.text("")], "stop"
        for index, words in ((0, thought.split(" ")), (1, pieces)):
            await emit({"type": "part", "index": index, "kind": parts[index]["kind"]})
            for word in words:
                if self.stops[run].is_set():
                    finish = "stopped"
                    break
                said = f"{word} " if index == 0 else word
                parts[index]["text"] += said
                await emit({"type": "delta", "index": index, "text": said})
                await asyncio.sleep(self.pace)
        made = self._view(
            "assistant",
            parts,
            model=model,
            finish=finish,
            usage={"input_tokens": 90, "output_tokens": 200},
            cost="0.0031",
        )
        messages.append(made)
        await emit({"type": "done", "view": made, "usage": made["usage"], "cost": made["cost"]})
