"""Writes docs/operations/sdk-compatibility.md: `python -m tests.gateway.matrix.page`."""

from __future__ import annotations

from pathlib import Path

from tests.gateway.matrix.behind import BACKS
from tests.gateway.matrix.cells import CLIENTS
from tests.gateway.matrix.frameworks import FRAMEWORKS
from tests.gateway.matrix.losses import LOSSES, Known
from tests.gateway.matrix.recorded import SCENARIOS as RECORDED
from tests.gateway.matrix.scenarios import SCENARIOS

PAGE = Path(__file__).parents[3] / "docs" / "operations" / "sdk-compatibility.md"
_HEAD = """\
# The matrix: official SDKs before every API

What works through the gateway, and what does not. Each official SDK is a client of a running
gateway, in front of a provider of each dialect, with whole answers and with streams. The dialects
behind it: {backs}.

`make test` runs a cover in which any two of client, provider and scenario meet, `make test-all`
runs every cell. Scenarios marked with ° run with recorded answers of the providers
as well. This page is written by `python -m tests.gateway.matrix.page`; a test compares it.

✓ means: with every provider, whole and streamed, the client sees what the provider said, and the
provider gets a valid request that says what the client said. A number refers to a loss below. A
loss that does not happen fails the tests as well.
"""
_BETWEEN = """
## What the scenarios check

| scenario | what is done |
|---|---|
{scenarios}
| embeddings | Two texts, and their vectors. From Anthropic, who has none, a 400. |

## Losses

Everything else of such an answer arrives, and the conversation goes on.

| | client | lost | with | why |
|---|---|---|---|---|
{losses}

## Agents of other libraries

Each of these finishes a tool round (the model calls a tool, the library runs it, the model
answers), with every provider, whole and streamed:

{frameworks}
"""


def page() -> str:
    """The page as it should be."""
    listed = [f"`{back}`" for back in BACKS]
    head = _HEAD.format(backs=", ".join(listed))
    titles = "".join(f" {client.name} |" for client in CLIENTS)
    rows = [f"| scenario |{titles}", f"|---|{'---|' * len(CLIENTS)}"]
    rows += [_row(scenario.name) for scenario in SCENARIOS]
    rows.append("| embeddings |" + "".join(f" {'✓' if c.embeds else ''} |" for c in CLIENTS))
    between = _BETWEEN.format(
        scenarios="\n".join(f"| {each.name} | {_first_line(each.run)} |" for each in SCENARIOS),
        losses="\n".join(map(_loss, LOSSES)),
        frameworks="\n".join(f"- {each.name}" for each in FRAMEWORKS),
    )
    return "\n".join([head, *rows, between.rstrip(), ""])


def _row(scenario: str) -> str:
    mark = "°" if scenario in RECORDED else ""
    cells = "".join(f" {_cell(client.name, scenario)} |" for client in CLIENTS)
    return f"| {scenario}{mark} |{cells}"


def _cell(client: str, scenario: str) -> str:
    found = [loss for loss in LOSSES if loss.client == client and scenario in loss.scenarios]
    numbers = ", ".join(str(LOSSES.index(loss) + 1) for loss in found)
    return f"✓ but {numbers}" if found else "✓"


def _loss(loss: Known) -> str:
    where = "any" if loss.backs == BACKS else ", ".join(f"`{back}`" for back in loss.backs)
    number = LOSSES.index(loss) + 1
    return f"| {number} | {loss.client} | {loss.what} | {where} | {loss.reason} |"


def _first_line(function: object) -> str:
    return (function.__doc__ or "").strip().partition("\n")[0]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
