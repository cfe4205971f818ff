"""Made-up conversations, requests and keys, the same in every run."""

from __future__ import annotations

import base64
from random import Random
from typing import Any

NOW = 1_794_000_000.0
MODELS: list[dict[str, Any]] = [
    {"id": "anthropic:claude-sonnet", "name": "claude-sonnet", "provider": "anthropic"},
    {"id": "openai:gpt-5", "name": "gpt-5", "provider": "openai"},
    {"id": "gemini:gemini-3-pro", "name": "gemini-3-pro", "provider": "gemini"},
    {"id": "local:smollm2", "name": "smollm2", "provider": "local", "is_local": True},
]
FORMATS = [
    {"id": "dragoman", "label": "Dragoman (JSON)", "extension": "json"},
    {"id": "openai-chat", "label": "OpenAI Chat", "extension": "json"},
    {"id": "markdown", "label": "Markdown", "extension": "md"},
]
DIALECTS = ["openai-chat", "openai-responses", "anthropic", "gemini", "ollama"]
TARGETS = [
    {"id": "openai:gpt-5", "label": "OpenAI Chat · gpt-5"},
    {"id": "anthropic:claude-sonnet", "label": "Anthropic · claude-sonnet"},
    {"id": "gemini:gemini-3-pro", "label": "Gemini · gemini-3-pro"},
    {"id": "openai-strict", "label": "OpenAI Chat · strict server"},
]
SUBJECTS = (
    "Trip to Trieste in October", "Why is the sky dark at night?", "Refactor the parser", "Dinner for six",
    "Tax form, line 12", "Names for a cat", "SQL: the slow query", "Letter to the landlord",
    "Reading list on cities", "Sourdough that does not rise",
)  # fmt: skip
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FABJADveWkH6oAAAAAElFTkSuQmCC"
)
RICH = """The sky is dark because the universe has a **finite age** and expands: most lines of sight end \
in nothing that has reached us yet. This is *Olbers' paradox*.

| cause | share | note |
|:--|--:|:--|
| finite age | 90 % | light had 13.8 Gyr to travel |
| redshift | 10 % | see `z` below |

With the scale factor $a(t)$, the received flux is

$$F = \\int_0^{t_0} \\frac{L\\, n(t)}{4\\pi r^2}\\, \\frac{a(t)}{a(t_0)}\\, dt$$

```python
def flux(luminosity: float, distance: float) -> float:
    # inverse square, nothing absorbed
    return luminosity / (4 * 3.14159 * distance**2)
```

1. Write down the integral.
2. Put in the age.
   - It converges.

See [the article](https://en.wikipedia.org/wiki/Olbers%27s_paradox)."""


def conversations(count: int) -> list[dict[str, Any]]:
    """The rows of the list, newest first."""
    random = Random(25)
    return [
        {
            "id": f"c{number}",
            "title": f"{SUBJECTS[number % len(SUBJECTS)]}{f' ({number})' if number > 9 else ''}",
            "first_line": "I would like to know how this works, and what to do first.",
            "model": MODELS[number % 4]["name"],
            "messages": 2000 if number == 1 else 6 if number == 0 else random.randrange(2, 60),
            "updated_at": NOW - number * 5000,
            "pinned": number in {0, 3},
            "tags": [["travel"], ["physics", "to read"], ["work"], ["home"]][number]
            if number < 4
            else [],
            "cost": f"{random.random() / 10:.4f}",
        }
        for number in range(count)
    ]


def _view(number: int, role: str, parts: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    made = {
        "id": f"m{number}",
        "role": role,
        "parts": parts,
        "created_at": NOW - 9000 + number,
        "siblings": [],
    }
    if role == "assistant":
        made |= {"model": "claude-sonnet", "provider": "anthropic", "finish": "stop", "cost": "0.0042",
                 "usage": {"input_tokens": 812, "output_tokens": 264}}  # fmt: skip
    return made | more


def text(words: str) -> dict[str, Any]:
    """A part of text."""
    return {"kind": "text", "text": words}


def showcase() -> list[dict[str, Any]]:
    """A conversation with one of everything."""
    call = {
        "kind": "call",
        "name": "weather",
        "call_id": "t1",
        "arguments": '{"city": "Trieste", "days": 2}',
    }
    return [
        _view(1, "user", [text("Why is the sky dark at night? Use a formula.")]),
        _view(2, "assistant", [{"kind": "thinking", "text": "Olbers' paradox: finite age, redshift."}, text(RICH)]),
        _view(3, "user", [text("And what is the weather in Trieste? Here is a picture."),
              {"kind": "image", "mime": "image/png", "name": "window.png", "size": 78, "url": "media/window"},
              {"kind": "file", "mime": "text/csv", "name": "readings.csv", "size": 48210, "url": "media/readings"}]),
        _view(4, "assistant", [text("Let me look."), call], finish="tool_calls", model="gpt-5"),
        _view(5, "tool", [{"kind": "result", "call_id": "t1", "text": '{"temperature": 17, "sky": "bora"}'}]),
        _view(6, "assistant", [text("17 °C, and the *bora* blows. Take a coat.")], model="gpt-5"),
    ]  # fmt: skip


def long_conversation(count: int) -> list[dict[str, Any]]:
    """A conversation of many messages, every twentieth of them rich."""
    return [
        _view(number, "assistant" if number % 2 else "user", [text(RICH if number % 20 == 1 else f"Message {number}: some words, **some bold**, and `code`.")])
        for number in range(count)
    ]  # fmt: skip


def request(number: int, time: float) -> dict[str, Any]:
    """A row of the traffic."""
    random = Random(number)
    status = random.choices([200, 429, 500, 499], [90, 4, 3, 3])[0]
    model = random.choice(MODELS)
    return {
        "id": f"r{number}", "time": time, "front": random.choice(DIALECTS), "kind": "chat",
        "route": random.choice(["default", "cheap", "coding"]), "provider": model["provider"],
        "model": model["name"], "status": status, "key": random.choice(["team-web", "nightly", "ci"]),
        "seconds": random.lognormvariate(0.4, 0.8), "first_byte": random.lognormvariate(-1.2, 0.5),
        "tokens_in": random.randrange(40, 9000), "tokens_out": random.randrange(5, 2000),
        "cost": f"{random.random() / 40:.6f}", "losses": int(random.random() >= 0.9),
        "repairs": int(random.random() >= 0.85), "attempts": 1 + (random.random() < 0.06),
        "passes": random.random() < 0.4, "stream": random.random() < 0.7,
        "error": None if status < 400 else "RateLimited" if status == 429 else "ServerError", "left": status == 499,
    }  # fmt: skip


def series(steps: list[float], names: list[str]) -> list[dict[str, Any]]:
    """What the plots show."""
    random = Random(7)
    made = []
    for rank, name in enumerate(names):
        counts = [max(0, int(random.gauss(30 / (rank + 1), 5))) for _ in steps]
        made.append({
            "name": name, "requests": counts, "errors": [each // 12 for each in counts],
            "p50": [0.6 + rank * 0.4 + random.random() * 0.3 for _ in steps],
            "p95": [2.1 + rank * 0.6 + random.random() for _ in steps],
            "tokens_in": [each * 900 for each in counts], "tokens_out": [each * 240 for each in counts],
            "cost": [round(each * 0.004, 4) for each in counts],
        })  # fmt: skip
    return made


def keys() -> list[dict[str, Any]]:
    """Keys in every state."""
    plain: dict[str, Any] = {
        "models": [], "requests_per_minute": None, "tokens_per_minute": None, "max_concurrent": None, "budgets": [],
        "expires_at": None, "created_at": NOW - 4e6, "revoked_at": None, "is_admin": False,
    }  # fmt: skip
    return [
        {**plain, "id": "key_web", "name": "team-web", "requests_per_minute": 600, "tokens_per_minute": 200_000,
         "budgets": [{"kind": "cost", "amount": "200", "period": "month", "used": "171.30"}, {"kind": "tokens", "amount": "5000000", "period": "day", "used": "910000"}]},
        {**plain, "id": "key_ci", "name": "ci", "models": ["gpt-5-mini", "claude-*"], "max_concurrent": 4, "expires_at": NOW + 9e8,
         "budgets": [{"kind": "cost", "amount": "5", "period": "day", "used": "5.2"}]},
        {**plain, "id": "key_admin", "name": "operator", "is_admin": True},
        {**plain, "id": "key_old", "name": "prototype", "revoked_at": NOW - 1e6},
    ]  # fmt: skip


def routes() -> list[dict[str, Any]]:
    """Routes in every state."""

    def hop(place: str, model: str | None, **more: Any) -> dict[str, Any]:
        plain = {
            "weight": 1,
            "healthy": True,
            "failures": 0,
            "last_error": None,
            "resting_until": None,
        }
        return {"place": place, "provider": place, "model": model, **plain, **more}

    return [
        {"name": "default", "model": "*", "hops": [hop("anthropic", None), hop("openai", "gpt-5")], "budgets": [], "requests": 48210, "errors": 31, "p50": 0.84},
        {"name": "cheap", "model": "small", "hops": [hop("groq", "llama-4", healthy=False, failures=7, last_error="Overloaded", resting_until=NOW + 60), hop("local", "smollm2", weight=2)],
         "budgets": [{"kind": "cost", "amount": "10", "period": "day", "used": "9.1"}], "requests": 1204, "errors": 88, "p50": 0.31},
        {"name": "coding", "model": "code-*", "hops": [hop("openai", "gpt-5", healthy=False, failures=12, last_error="RateLimited")], "budgets": [], "requests": 77, "errors": 77, "p50": None},
    ]  # fmt: skip
