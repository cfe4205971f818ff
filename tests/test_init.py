"""The public surface: what it is, where it comes from, and what it costs to import."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import dragoman

# Adding a name here is a promise to keep it; removing one breaks somebody's program.
PUBLIC = """
    Agent AgentChat AgentEvent AgentStream AllFailed Audio AuthenticationError BlockingAgentStream
    BlockingChatHistory CacheHint ChatHistory ChatHistoryConfig Choice Chunk Citation Client
    ConfigError Conflict ConnectError Content ContextManagement ContextTooLong ContextTooSmall
    ConversationHistory Corrupt Dialect DragomanError EchoModel Embedding Embeddings Encoded Event
    FallbackModel File FinishReason Front Hooks Image InvalidInputError InvalidRequest LimitExceeded
    Limits LocalModel Loss LossError MediaOutput Message MessageAccumulator MessageStore Messages
    Model ModelInfo ModelNotFound NotFound NotRecorded Opaque Orchestrator OrderError Origin Output
    Overloaded PermissionDenied Policy Price Prices Provider ProviderError ProvidesMessage
    ProvidesMessages QuotaExceeded RateLimited Refusal Refused Repair ReplayTransport Request
    Response Result Retries Role Run RunContext RunLimits Sampling ScriptedModel Section Sections
    ServerError ServerTool ServerToolCall ServerToolResult Service SessionIdentity State StoreError
    StreamInterrupted Target Text Thinking ThinkingConfig TimeoutError Timeouts TokenCount Tool
    ToolCall ToolCallDelta ToolChoice ToolDefinition ToolError ToolExecutor ToolOrchestrator
    ToolResult ToolRetry ToolTimeout TransportError TypedOrchestrator Usage Video Violation
    WireError __version__ context_window detect dialect dialects open_model provider provider_names
    schema_of tool translate
""".split()  # noqa: SIM905 - 75 lines of one word each would be harder to read

THIRD_PARTY = """
import sys
before = set(sys.modules)
{}
loaded = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(*sorted(loaded - sys.stdlib_module_names - {{"dragoman"}}))
"""


def loaded_by(code: str) -> set[str]:
    """The third-party packages that a fresh interpreter loads for this code."""
    program = THIRD_PARTY.format(code)
    # -S leaves out site-packages' own start-up code; the paths are handed over.
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{program}"],
        capture_output=True, check=True, text=True, timeout=60,
    )  # fmt: skip
    return set(run.stdout.split())


def imported_for_type_checkers() -> dict[str, str]:
    """The names under `if TYPE_CHECKING:`, with the modules they come from."""
    tree = ast.parse(Path(dragoman.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    return {
        alias.name: node.module or ""
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_the_public_names_are_pinned() -> None:
    """Exactly these, sorted, each once."""
    assert dragoman.__all__ == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_resolves(name: str) -> None:
    """To an object that is not a module, and to the same one each time."""
    found = getattr(dragoman, name)
    assert found is getattr(dragoman, name)
    assert type(found).__name__ != "module"


def test_type_checkers_see_the_same_names_from_the_same_places() -> None:
    """What is resolved lazily, what is imported for type checkers and `__all__` agree."""
    homes = {name: f"dragoman.{home}" for home, names in dragoman._HOMES.items() for name in names}
    assert imported_for_type_checkers() == homes
    assert sorted([*homes, "__version__"]) == sorted(dragoman.__all__)


def test_all_errors_are_public() -> None:
    """Whoever has to catch one finds it at the top."""
    from dragoman import errors

    assert set(errors.__all__) <= set(dragoman.__all__)


def test_dir_lists_the_public_names() -> None:
    """Before any of them has been used, too."""
    assert set(PUBLIC) <= set(dir(dragoman))
    fresh = "import dragoman; print(set(dragoman.__all__) <= set(dir(dragoman)))"
    assert subprocess.run(
        [sys.executable, "-c", fresh], capture_output=True, check=True, text=True, timeout=60
    ).stdout == "True\n"  # fmt: skip


def test_unknown_names_are_attribute_errors() -> None:
    """As in any module."""
    with pytest.raises(AttributeError, match="module 'dragoman' has no attribute 'Nonsense'"):
        _ = dragoman.Nonsense
    with pytest.raises(ImportError):
        exec("from dragoman import Nonsense", {})  # noqa: S102 - a type checker would refuse it


def test_importing_loads_nothing_but_msgspec() -> None:
    """Neither the package nor all of its public names need another package."""
    msgspec = loaded_by("import msgspec, msgspec.json")  # and typing_extensions, where it is there
    assert "msgspec" in msgspec
    assert loaded_by("import dragoman") <= msgspec
    assert loaded_by("from dragoman import *") <= msgspec


def test_using_messages_does_not_load_the_wire() -> None:
    """Names are resolved one by one: who needs only the model pays only for the model."""
    code = "import sys, dragoman; dragoman.Message; print('dragoman.wire' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True, timeout=60
    )
    assert run.stdout == "False\n"
