"""Completes generated pieces to valid bodies.

In a conversation, a result follows its call and a call is followed by its result, with the same id;
a user message comes first; roles match their content.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.sdk_types.sentinels import Sentinels

Wire = dict[str, Any]
Host = Callable[[Wire, Sentinels], Wire]


# --- Chat


def chat_request(made: Wire, sentinels: Sentinels) -> Wire:
    """A Chat request with matching calls and results."""
    messages: list[Wire] = []
    asked = False
    for message in made.get("messages") or ():
        role = message.get("role")
        if role not in ("system", "developer") and not asked:
            asked = True
            messages.append({"role": "user", "content": sentinels.text()})
        if role == "tool":
            message["tool_call_id"] = message.get("tool_call_id") or sentinels.text("id")
            messages.append(
                {"role": "assistant", "content": None,
                 "tool_calls": [_chat_call(message["tool_call_id"], message.get("name") or "f")]}
            )  # fmt: skip
        if role == "function":
            called = {"name": message["name"], "arguments": "{}"}
            messages.append({"role": "assistant", "content": None, "function_call": called})
        messages.append(message)
        messages += _chat_results(message, sentinels)
    messages.append({"role": "user", "content": sentinels.text()})
    return {**made, "messages": messages}


def _chat_call(call_id: str, name: str) -> Wire:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}


def _chat_results(message: Wire, sentinels: Sentinels) -> list[Wire]:
    results: list[Wire] = []
    for call in message.get("tool_calls") or ():
        call["id"] = call.get("id") or sentinels.text("id")
        results.append({"role": "tool", "tool_call_id": call["id"], "content": sentinels.text()})
    if (called := message.get("function_call")) and called.get("name"):
        results.append({"role": "function", "name": called["name"], "content": sentinels.text()})
    return results


def chat_response(made: Wire, _sentinels: Sentinels) -> Wire:
    """A Chat response with the role of the assistant."""
    for choice in made.get("choices") or ():
        if "role" in (choice.get("message") or {}):
            choice["message"]["role"] = "assistant"
    return made


# --- Responses

_OUTPUTS = {
    "function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output", "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output", "apply_patch_call": "apply_patch_call_output",
    "tool_search_call": "tool_search_output",
}  # fmt: skip
_CALLS = {output: call for call, output in _OUTPUTS.items()}
_BARE_CALLS: dict[str, Wire] = {
    "function_call": {"name": "f", "arguments": "{}"},
    "custom_tool_call": {"name": "f", "input": ""},
    "computer_call": {"id": "cu_1", "action": {"type": "wait"}, "pending_safety_checks": [],
                      "status": "completed"},
    "local_shell_call": {"id": "lsh_1", "status": "completed",
                         "action": {"type": "exec", "command": [], "env": {}}},
    "shell_call": {"action": {"commands": []}},
    "apply_patch_call": {"status": "completed",
                         "operation": {"type": "delete_file", "path": "a"}},
    "tool_search_call": {"arguments": {}},
}  # fmt: skip
_BARE_OUTPUTS: dict[str, Wire] = {
    "function_call_output": {"output": "x"},
    "custom_tool_call_output": {"output": "x"},
    "computer_call_output": {"output": {"type": "computer_screenshot",
                                        "image_url": "https://example.com/1.png"}},
    "local_shell_call_output": {"output": "x"},
    "shell_call_output": {"output": []},
    "apply_patch_call_output": {"status": "completed"},
    "tool_search_output": {"tools": []},
}  # fmt: skip


def responses_request(made: Wire, sentinels: Sentinels) -> Wire:
    """A Responses request with matching calls and outputs."""
    given = made.get("input")
    if isinstance(given, str):
        return made
    items: list[Wire] = [{"role": "user", "content": sentinels.text()}]
    for item in given or ():
        kind = item.get("type")
        if kind in _CALLS and _named(item, sentinels):
            call = _CALLS[kind]
            items.append({"type": call, "call_id": item["call_id"], **_BARE_CALLS[call]})
        if kind == "mcp_approval_response":
            items.append({"type": "mcp_approval_request", "id": item["approval_request_id"],
                          "arguments": "{}", "name": "f", "server_label": "l"})  # fmt: skip
        items.append(item)
        if kind in _OUTPUTS and _named(item, sentinels):
            output = _OUTPUTS[kind]
            items.append({"type": output, "call_id": item["call_id"], **_BARE_OUTPUTS[output]})
        if kind == "mcp_approval_request":
            items.append({"type": "mcp_approval_response", "approve": True,
                          "approval_request_id": item["id"]})  # fmt: skip
    items.append({"role": "user", "content": sentinels.text()})
    return {**made, "input": items}


def _named(item: Wire, sentinels: Sentinels) -> bool:
    """Gives a call or a result an id; those of a tool search need none."""
    if item.get("call_id") is None and item["type"].startswith("tool_search"):
        return False
    item["call_id"] = item.get("call_id") or sentinels.text("call_id")
    return True


def responses_response(made: Wire, _sentinels: Sentinels) -> Wire:
    """A Responses response: complete, unless the case has a status."""
    made.setdefault("status", "completed")
    return made


# --- Anthropic

_SERVER_CALLS = {"web_search_tool_result": "web_search", "web_fetch_tool_result": "web_fetch",
                 "code_execution_tool_result": "code_execution",
                 "bash_code_execution_tool_result": "bash_code_execution",
                 "text_editor_code_execution_tool_result": "text_editor_code_execution",
                 "tool_search_tool_result": "tool_search_tool_regex",
                 "advisor_tool_result": "advisor"}  # fmt: skip


def anthropic_request(made: Wire, sentinels: Sentinels) -> Wire:
    """An Anthropic request with matching calls and results."""
    made["max_tokens"] = 900_000
    messages: list[Wire] = []
    for message in made["messages"]:
        content = message.get("content")
        listed: list[Any] = content if isinstance(content, list) else []
        blocks: list[Wire] = [block for block in listed if isinstance(block, dict)]
        results = [block for block in blocks if block.get("type") == "tool_result"]
        if message.get("role") != "user" or results:
            messages.append({"role": "user", "content": sentinels.text()})
        if results:
            uses = [{"type": "tool_use", "id": block["tool_use_id"], "name": "f", "input": {}}
                    for block in results]  # fmt: skip
            messages.append({"role": "assistant", "content": uses})
        if isinstance(content, list):
            message["content"] = [each for block in content for each in with_call(block)]
        if content != []:
            messages.append(message)
        answers = [{"type": "tool_result", "tool_use_id": block["id"], "content": sentinels.text()}
                   for block in blocks if block.get("type") == "tool_use"]  # fmt: skip
        if message.get("role") != "user":
            messages.append({"role": "user", "content": answers or sentinels.text()})
    messages = messages or [{"role": "user", "content": sentinels.text()}]
    return {**made, "messages": messages}


def with_call(block: Any) -> list[Any]:
    """A block, after the call of the provider-run tool that it belongs to."""
    kind = block.get("type") if isinstance(block, dict) else None
    if kind in _SERVER_CALLS:
        return [{"type": "server_tool_use", "id": block["tool_use_id"], "input": {},
                 "name": _SERVER_CALLS[kind]}, block]  # fmt: skip
    if kind == "mcp_tool_result":
        return [{"type": "mcp_tool_use", "id": block["tool_use_id"], "input": {}, "name": "f",
                 "server_name": "m"}, block]  # fmt: skip
    return [block]


def anthropic_response(made: Wire, _sentinels: Sentinels) -> Wire:
    """An Anthropic response with a call for each result."""
    made["content"] = [each for block in made["content"] for each in with_call(block)]
    return made


# --- Gemini

_MODELS = frozenset({"functionCall", "thought", "executableCode", "codeExecutionResult", "toolCall",
                     "toolResponse", "thoughtSignature"})  # fmt: skip


def gemini_request(made: Wire, sentinels: Sentinels) -> Wire:
    """A Gemini request with matching calls and results."""
    contents: list[Wire] = [{"role": "user", "parts": [{"text": sentinels.text()}]}]
    for content in made.get("contents") or ():
        parts: list[Wire] = content.get("parts") or []
        answers = [part["functionResponse"] for part in parts if part.get("functionResponse")]
        if answers:
            made_up = [{"functionCall": _gemini_named(answer, sentinels)} for answer in answers]
            contents.append({"role": "model", "parts": made_up})
        is_models = any(not _MODELS.isdisjoint(part) for part in parts)
        content["role"] = "model" if is_models else "user"
        contents.append(content)
        calls = [part["functionCall"] for part in parts if part.get("functionCall")]
        if calls:
            contents.append({"role": "user", "parts": [
                {"functionResponse": {**_gemini_named(call, sentinels), "response": {"a": 1}}}
                for call in calls]})  # fmt: skip
    if "role" in (made.get("systemInstruction") or {}):
        made["systemInstruction"]["role"] = "user"
    for tool in made.get("tools") or ():
        for declared in tool.get("functionDeclarations") or ():
            declared["name"] = declared.get("name") or sentinels.text("name")
    return {**made, "contents": contents}


def _gemini_named(part: Wire, sentinels: Sentinels) -> Wire:
    """Gives a call or a result a name; returns the fields that its counterpart shares."""
    part["name"] = part.get("name") or sentinels.text("name")
    return {key: part[key] for key in ("id", "name") if part.get(key) is not None}


def gemini_response(made: Wire, _sentinels: Sentinels) -> Wire:
    """A Gemini response with the role of the model."""
    for candidate in made.get("candidates") or ():
        if "role" in (candidate.get("content") or {}):
            candidate["content"]["role"] = "model"
        for part in (candidate.get("content") or {}).get("parts") or ():
            if part.get("functionCall"):
                part["functionCall"]["name"] = part["functionCall"].get("name") or "f"
    return made


# --- Ollama


def ollama_request(made: Wire, sentinels: Sentinels) -> Wire:
    """An Ollama request with matching calls and results."""
    messages: list[Wire] = [{"role": "user", "content": sentinels.text()}]
    for message in made.get("messages") or ():
        if message.get("tool_name"):
            message["role"] = "tool"
            called = {"function": {"name": message["tool_name"], "arguments": {}}}
            messages.append({"role": "assistant", "content": "", "tool_calls": [called]})
        elif message.get("tool_calls") or message.get("thinking"):
            message["role"] = "assistant"
        else:
            message["role"] = "user"
        messages.append(message)
        messages += [
            {"role": "tool", "tool_name": call["function"]["name"], "content": sentinels.text()}
            for call in message.get("tool_calls") or ()
        ]
    return {**made, "messages": messages}


def ollama_response(made: Wire, _sentinels: Sentinels) -> Wire:
    """An Ollama response with the role of the assistant."""
    made["message"]["role"] = "assistant"
    return made
