"""Texts for the model about typed output: what to do, and what was wrong."""

from __future__ import annotations

TOOL_NAME = "return_result"
"""The tool that takes the value; renamed if the user has a tool of that name."""

TOOL_DESCRIPTION = (
    "Return the final result. Call this once, when everything else is done, with the whole result;"
    " nothing that is said outside of this call counts."
)
RECEIVED = "The result was received."
"""The result of the call that gave the value."""
SUPERFLUOUS = "Another call of this turn has already given the result; this one was not used."
"""The result of further calls to the tool in one turn."""

PHASE_TWO = (
    "Now give the final result of all this as JSON that fits the given schema. Use what was said"
    " and found so far, call no tools, and write nothing but the JSON."
)
"""The user message that begins the second phase."""


def feedback(problems: str) -> str:
    """The user message after an unusable answer."""
    return (
        f"Your answer can't be used. {_sentence(problems)} Answer again with the whole result,"
        " corrected: JSON that fits the schema, and nothing else."
    )


def tool_feedback(problems: str, name: str = TOOL_NAME) -> str:
    """The error result of an unusable call."""
    return (
        f"The result can't be used. {_sentence(problems)} Call `{name}` again with the whole"
        " result, corrected."
    )


def reminder(name: str = TOOL_NAME) -> str:
    """The user message after an answer that did not call the tool."""
    return f"The final result is still missing. Call `{name}` with it now; words alone don't count."


def instruction(schema: str) -> str:
    """The schema in words, for providers without a field for it."""
    return (
        f"Answer with JSON only, without any words around it, that fits this JSON Schema:\n{schema}"
    )


def _sentence(problems: str) -> str:
    text = problems.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
