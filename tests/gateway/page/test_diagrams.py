"""Mermaid diagrams in a browser, at two widths: what is drawn, and what stays source."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gateway.page.browsing import DRAWN, Looking
from tests.gateway.page.flows import WIDTHS
from tests.gateway.page.mock_data import text
from tests.gateway.page.mock_state import Mock

pytestmark = pytest.mark.slow

FLOW = """flowchart TD
    A[Start] --> B{Is it <b>safe</b>?}
    B -->|Yes| C(Run it)
    B -- No --> D["Ask, then<br>decide"]
    D -.-> B
    C & D ==>|all| E((End))
    A--tight-->C
    style A fill:#f00
    click A "javascript:window.pwned=1"
"""
SEQUENCE = """sequenceDiagram
    participant U as User
    participant G as Gateway
    U->>+G: request
    alt is allowed
        G->>G: translate
        G-->>-U: answer
    else is refused
        G--xU: error
    end
    Note over U,G: nothing is lost
"""
GROUPS = """flowchart TD
    user([User]) -->|asks| gw
    subgraph cloud [The <b>cloud</b>]
      direction LR
      gw[Gateway] --> api[Server]
      subgraph data [Data]
        db[(Store)]
      end
      api --> db
    end
    subgraph Two words
      prom[Metrics]
    end
    cloud --> audit[Audit]
    api --> prom
"""
STATES = """stateDiagram-v2
    [*] --> Still
    Still --> Moving : go on
    Moving --> [*]
    state "Stands still" as Still
    state Moving {
      slow --> fast: more
    }
"""
SOURCES = {
    "another kind": 'pie title Pets\n  "Dogs" : 3',
    "an open subgraph": "graph TD\n subgraph one\n A-->B",
    "a link of a subgraph to its own node": "graph TD\n subgraph one\n A-->B\n end\n one-->A",
    "too many subgraphs": "graph TD\n" + "".join(f"subgraph s{n}\nn{n}\nend\n" for n in range(50)),
    "a note of a state": "stateDiagram-v2\n [*] --> A\n note right of A: x",
    "a malformed link": "graph TD\n A ->-> B",
    "an open frame": "sequenceDiagram\n loop often\n A->>B: x",
    "too many nodes": "graph TD\n" + "\n".join(f"n{each} --> n{each + 1}" for each in range(400)),
    "nested deeply": "graph TD\n A" + "[" * 5000,
    "a link that is too short": "graph TD\n A -- B",
    "names of prototypes": "graph TD\n __proto__[",
}


@pytest.fixture(params=list(WIDTHS.values()), ids=list(WIDTHS))
def screen(request: pytest.FixtureRequest) -> dict[str, Any]:
    """A desktop and a phone."""
    found: dict[str, Any] = request.param
    return found


def shown(looking: Looking, mock: Mock, source: str) -> Any:
    """An answer with a diagram, when it is drawn."""
    answer = {"id": "d1", "role": "assistant", "parts": [text(f"```mermaid\n{source}\n```")]}
    mock.threads["c0"] = {0: [answer]}
    page = looking.go("#/talk/c0", "#m-d1 .md")
    page.evaluate(DRAWN)
    return page


def test_a_flowchart_is_drawn(looking: Looking, mock: Mock) -> None:
    """Its nodes, links and labels; markup and links of the source are text or left out."""
    page = shown(looking, mock, FLOW)
    said = page.locator(".diagram text").all_text_contents()
    assert said.count("Is it <b>safe</b>?") == 1
    assert {"Start", "Run it", "End", "Ask, then", "decide"} <= set(said)
    assert {"Yes", "No", "tight", "all"} <= set(said)
    assert page.locator(".diagram .node").count() == 5
    assert page.locator(".diagram .link").count() == 7
    assert page.locator(".diagram :is(a, b, style, script, image, use, foreignObject)").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_nodes_do_not_cover_each_other(looking: Looking, mock: Mock) -> None:
    """In each direction, and the first node is where the direction begins."""
    for direction, side in (("TD", "top"), ("BT", "bottom"), ("LR", "left"), ("RL", "right")):
        page = shown(looking, mock, FLOW.replace("TD", direction))
        boxes = page.locator(".diagram .node").evaluate_all(
            "(all) => all.map((one) => { const { left, right, top, bottom } ="
            " one.getBoundingClientRect(); return { left, right, top, bottom }; })"
        )
        for number, one in enumerate(boxes):
            for other in boxes[number + 1 :]:
                beside = one["right"] <= other["left"] or other["right"] <= one["left"]
                assert beside or one["bottom"] <= other["top"] or other["bottom"] <= one["top"]
        ends = [each[side] for each in boxes]
        assert ends[0] == (min if side in {"top", "left"} else max)(ends)
        page.goto("about:blank")


def test_subgraphs_are_frames(looking: Looking, mock: Mock) -> None:
    """Around their nodes and no others, with their titles; links lead into them and to them."""
    page = shown(looking, mock, GROUPS)
    assert {"The <b>cloud</b>", "Data", "Two words", "asks"} <= set(
        page.locator(".diagram text").all_text_contents()
    )
    places = """(all) => all.map((one) => {
      const { left, right, top, bottom } = one.getBoundingClientRect();
      return { left, right, top, bottom };
    })"""
    frames = page.locator(".diagram .frame").evaluate_all(places)
    nodes = page.locator(".diagram .node").evaluate_all(places)
    held = [
        [
            number
            for number, one in enumerate(nodes)
            if frame["left"] < one["right"] and one["left"] < frame["right"]
            and frame["top"] < one["bottom"] and one["top"] < frame["bottom"]
        ]
        for frame in frames
    ]  # fmt: skip
    assert held == [[1, 2, 3], [3], [4]]  # of user, gw, api, db, prom, audit
    assert page.locator(".diagram .link").count() == 5
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_states_are_drawn(looking: Looking, mock: Mock) -> None:
    """Their names, what leads from one to another, and the states within a state."""
    page = shown(looking, mock, STATES)
    said = set(page.locator(".diagram text").all_text_contents())
    assert {"Stands still", "go on", "Moving", "slow", "fast", "more"} <= said
    assert page.locator(".diagram .frame").count() == 1
    assert page.locator(".diagram circle").count() == 2
    assert page.locator(".diagram .link").count() == 4


def test_a_sequence_is_drawn(looking: Looking, mock: Mock) -> None:
    """Participants by their names, messages in their order, a frame and a note."""
    page = shown(looking, mock, SEQUENCE)
    said = page.locator(".diagram text").all_text_contents()
    order = [each for each in said if each in {"request", "translate", "answer", "error"}]
    assert order == ["request", "translate", "answer", "error"]
    assert {"User", "Gateway", "nothing is lost", "is refused"} <= set(said)
    assert page.locator(".diagram .frame").count() == page.locator(".diagram .note").count() == 1


def test_the_source_can_be_shown(looking: Looking, mock: Mock) -> None:
    """A button shows the source with its copy button, and the diagram again."""
    page = shown(looking, mock, FLOW)
    page.get_by_role("button", name="Show source").click()
    assert "flowchart TD" in page.locator(".code pre").inner_text()
    assert page.get_by_label("Copy code").count() == 1
    page.get_by_role("button", name="Show diagram").click()
    assert page.locator(".diagram svg").count() == 1


@pytest.mark.parametrize("source", SOURCES.values(), ids=list(SOURCES))
def test_what_can_not_be_drawn_stays_source(looking: Looking, mock: Mock, source: str) -> None:
    """Other kinds of diagrams, and those that are malformed or too large."""
    page = shown(looking, mock, source)
    assert page.locator(".diagram").count() == 0
    assert source.partition("\n")[0] in page.locator(".code pre").inner_text()
