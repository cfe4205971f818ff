"""The requirements trace is correct: every requirement of the seeds is listed once, with evidence.

The seeds themselves may be absent: their numbers are generated, and their names are listed here.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "contributing" / "requirements-trace.md"

RANGE = re.compile(r"(?P<prefix>.*-)(?P<first>\d+)\.\.(?P<last>\d+)")
LATER = re.compile(r"later: issue ([4-9]|1[0-9])")

# The names in each seed: "seed owner-and-separator", then the names.
NAMED = """
004 ToolDefinitionTests. Should_Be_Immutable Should_Validate_Name Should_Validate_Name_NonEmpty
    Should_Accept_Valid_Names Should_Reject_Invalid_Name_Characters Should_Enforce_Name_MaxLength
    Should_Accept_Name_At_MaxLength Should_Require_Description Should_Require_Description_NonNull
    Should_Warn_Long_Description Should_Require_Object_Schema Should_Accept_Valid_Schema
    Should_Default_Strict_True Should_Allow_Strict_False CreateFromType_Should_Generate_Schema
    CreateFromType_Should_Include_Required CreateFromType_Should_Handle_Optional_Properties
    Should_Serialize_To_Json Should_Serialize_Strict_When_False Should_Deserialize_From_Json
    Should_Match_OpenAI_Function_Format Should_Implement_Value_Equality Should_Detect_Inequality
004 ToolCallDeltaTests. Should_Be_Immutable Should_Have_Index Should_Accept_Valid_Index_Values
    Index_Identifies_Which_ToolCall Should_Allow_Partial_Properties Should_Allow_Only_Index
    First_Delta_Should_Have_Id_And_Name Subsequent_Deltas_Only_Need_ArgumentsDelta
    Should_Support_ArgumentsDelta ArgumentsDelta_Can_Be_Empty_String
    ArgumentsDelta_Can_Be_Partial_Json Should_Support_Accumulation_Pattern
    Should_Handle_Multiple_Parallel_ToolCalls Should_Serialize_To_Json Should_Omit_Null_Properties
004 ConversationHistoryTests. Should_Start_Empty Should_Require_System_First
    Should_Accept_System_As_First_Message Should_Reject_Second_System_Message
    Should_Validate_Message_Order Should_Validate_User_Assistant_Alternation
    Should_Accept_Valid_Alternation Should_Allow_Tool_After_ToolCalls
    Should_Reject_Tool_Without_Preceding_ToolCalls Should_Validate_ToolCallId_Matches
    Should_Allow_Multiple_Tool_Results_For_Multiple_Calls Should_Track_Count
    Should_Return_LastMessage Should_Return_ImmutableList Should_Support_Clear
    Should_Accept_System_After_Clear Should_Be_ThreadSafe Should_Be_ThreadSafe_ConcurrentReads
    Should_Be_ThreadSafe_ConcurrentAdds Should_Support_Enumeration Should_Support_LINQ
    Should_Serialize
004 SerializationCompatibilityTests. Should_Match_Ollama_Format
    Should_Match_Ollama_ToolCall_Format Should_Match_vLLM_Format Should_Handle_Provider_Extensions
    Should_Roundtrip_All_Types
004 MessageBenchmarks. Benchmark_Construction Benchmark_Serialization Benchmark_Deserialization
    Benchmark_Equality Benchmark_ConversationAdd
003 CanProvideMessage:: toMessage
003 CanProvideMessages:: toMessages
003 MessageRole:: fromString fromAny is isNot oneOf isSystem normalizeArray
003 ContentType:: Text Image File
003 Message:: __construct make fromString empty asUser asAssistant asSystem asDeveloper fromAny
    fromContent fromContentPart fromImage fromArray fromInput isMessage hasRoleAndContent
    isMessages isArrayOfStrings isArrayOfMessageArrays isArrayOfContent isArrayOfMessages
    isArrayOfContentParts becomesComposite role name content contentParts isEmpty isComposite
    metadata withMetadata withContent addContentPart withRole addContentFrom clone toArray
    toString
003 Content:: empty text texts fromParts fromAny isComposite isEmpty isNull isSimple parts
    partsList firstContentPart lastContentPart addContentPart clone toArray normalized toString
    appendContentField
003 ContentParts:: empty fromArray add replaceLast first last get count withoutEmpty toArray
    toString
003 ContentPart:: text imageUrl image file audio fromArray fromAny type isTextPart hasText
    isSimple fields withFields withField get has isEmpty toArray shouldExport toString clone
003 Image:: fromFile fromBase64 fromUrl toContentPart toContent toMessage toMessages toArray
    toImageUrl getBase64Bytes getMimeType
003 File:: fromFile fromBase64 toContentPart
003 Audio:: __construct toContentPart
003 Metadata:: empty fromArray __construct withKeyValue withoutKey get hasKey keys isEmpty toArray
003 MessageList:: empty fromArray all count isEmpty first last get add addAll prependAll
    replaceLast removeHead removeTail reversed withoutEmpty toArray
003 Messages:: __construct fromMessages fromList empty fromString fromArray fromAnyArray fromAny
    fromInput first last all messageList count firstRole lastRole each map filter reduce head tail
    headList tailList isEmpty notEmpty hasComposites forRoles exceptRoles headWithRoles
    tailAfterRoles remapRoles contentParts toMergedPerRole asPerRoleArray appendMessage reversed
    withoutEmptyMessages clone toArray toString asString becomesEmpty becomesComposite
003 TextRepresentation:: fromAny
003 MessageStore:: fromSections fromMessages section parameters withSection select toMessages
    toArray toString
003 SectionOperator:: exists isEmpty get messages appendMessages setMessages remove clear
003 ParameterOperator:: get setParameter unsetParameter mergeParameters withParams
003 Section:: empty appendMessages withMessages appendContentField toMergedPerRole
    withoutEmptyMessages
003 Sections:: add filter has get toMessages all each count names
000 DataModelArray:: findItem getItem hasItem setItem removeItem
000 Message:: getId generateId getRole getContent getContentAsString setContent get getMetadata
    setMetadata toArray toArrayWithMeta jsonSerialize fromArray toSchema getExtras setExtras
    getExtra setExtra hasExtra removeExtra user assistant system developer toolCall toolResult
    create fromJSON getToolCalls
000 ToolCall:: getId getToolName getArguments toArray fromArray
000 Tool:: getName getDescription getProperties getRequired
000 ImageContent:: getUrl
000 ToolResultContent:: __construct __toString
000 TextContent:: __toString
000 MessageFormatter:: formatMessage formatMessages formatTools extractUsage extractToolCalls
    extractContent extractFinishReason extractSystemInstruction formatContentParts
    formatUserMessage formatAssistantMessage formatSystemMessage formatDeveloperMessage
    formatToolCallMessage formatToolResultMessage
000 Formatters:: OpenAi Claude Gemini Groq
000 LlmDriver:: sendMessage preparePayload makeRequest getRegisteredTools getSettings
    toolCallsToMessage toolResultToMessage
000 ChatHistory:: addMessage getMessages toArray
000 Integration:: conversationWithToolCalls saveAndRestore retrievalById switchDrivers
001 DataModelArray:: fill resolveTargetClass resolveFromCandidates validateAllowedModel
    discriminator allowedModels
001 Message:: validateRole fromArray matchesArray buildFromArray withImage withAudio
    toArrayWithMeta
001 DataModel:: generateSchema getCachedConfig ExcludeFromSchema
001 MessageArrayTest:: reconstructsUserMessage reconstructsToolCallMessage
    reconstructsAssistantMessage handlesMixedTypes
001 ChatHistoryConfig:: contextWindow reservedForCompletion storeMeta onBeforeSave onAfterLoad
    onBeforeAdd onAfterAdd truncationCallback fromArray
001 ChatHistoryStorage:: addMessage getMessages toApiFormat getLastMessage getConfig
    exceedsContextWindow getContextWindow save load writeItems checkAndTruncate truncateMessages
    defaultTruncation getDataModelClass getStoragePrefix
001 Storage:: SessionIdentity read getLast lazyLoad dirtyTracking multipleDrivers
001 ChatHistoryStorageTest:: returnsMessageArray callsHooks truncatesWhenExceeding
    usesCustomTruncation
002 Rule:: requestResponsePairs toolResultConsolidation multipleParts noProviderLogic
    completeMessageHistory messageProcessing
002 ChatResult:: id output messages finishReason usage metadata
002 Agent:: send sendFor sendStream tools history outputSchema selectOrchestrator embedQuery
    embedDocuments
002 History:: incrementalResults manualHistoryManagement consistentPattern toolMessagesIncluded
    multiTurnWithTools
002 TypedOutput:: returnResultTool resultsConsolidated jsonReplacesText
002 Thinking:: metadataKey streamedDeltas noExtraParts notReemitted separator neverSentBack
    consolidatedOnMessage absentWithoutSupport
002 Streaming:: parsedArguments newlineBetweenMessages firstChunkOnly
002 OpenAIChat:: separateToolMessages singleToolResult
002 OpenAIResponses:: functionCallOutput twoRequestWorkflow previousResponseId responseIdCaptured
002 Anthropic:: singleUserMessage
002 Gemini:: singleMessage
002 Ollama:: variesByEndpoint
002 ToolResultHelpers:: serialize
002 Orchestrator:: initialize processIteration finalize guaranteedCleanup
002 StreamingState:: conversationHistory toolMap encapsulated
002 StreamingIterationResult:: output messages shouldContinue
002 ToolExecutor:: executeBatch isSuccess error
002 MessageAccumulator:: accumulate consolidatedMessage
002 Benefits:: isolatedTesting newOrchestrators newProviders
"""


class Row(NamedTuple):
    """A row of the table."""

    what: list[str]
    evidence: str
    how: str


def expected() -> list[str]:
    """Everything to be traced: seed 004's numbers, the agents' ten, and the names above."""
    numbered = [
        *(f"FR-004a-{n:02}" for n in range(1, 116)),
        *(f"NFR-004a-{n:02}" for n in range(1, 41)),
        *(f"AC-{n:03}" for n in range(1, 131)),
        *(f"ACC-{n}" for n in range(29, 39)),
    ]
    groups = re.split(r"\n(?=\d)", NAMED.strip())
    return numbered + [name for group in groups for name in _named(group)]


def _named(group: str) -> Iterator[str]:
    seed, owner, *names = group.split()
    yield from (f"{seed} {owner}{name}" for name in names)


def rows(text: str) -> list[Row]:
    """The rows of all tables on the page."""
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [Row(list(_ids(what)), evidence, how) for what, evidence, how in cells]


def _ids(cell: str) -> Iterator[str]:
    for item in re.findall(r"`([^`]+)`", cell):
        span = RANGE.fullmatch(item)
        if span is None:
            yield item
            continue
        width, last = len(span["first"]), int(span["last"])
        for number in range(int(span["first"]), last + 1):
            yield f"{span['prefix']}{number:0{width}}"


def named_tests(evidence: str) -> list[str]:
    """The tests that a row names."""
    return re.findall(r"`(tests/[^`]+)`", evidence)


@cache
def names_in(path: str) -> frozenset[str]:
    """The tests in a file, those in classes as `Class::test`."""
    file = ROOT / path
    return frozenset(_tests(ast.parse(file.read_text("utf-8")))) if file.exists() else frozenset()


def _tests(tree: ast.Module) -> Iterator[str]:
    yield from _functions(tree.body)
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from (f"{node.name}::{name}" for name in _functions(node.body))


def _functions(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if name.startswith("test_"):
                    yield name
            case _:
                pass


TRACE = rows(PAGE.read_text("utf-8"))


def test_everything_is_traced_exactly_once() -> None:
    """No requirement, listed test or named operation is missing, repeated or invented."""
    wanted, found = Counter(expected()), Counter(chain.from_iterable(row.what for row in TRACE))
    assert {"missing": wanted - found, "too many": found - wanted} == {
        "missing": Counter(), "too many": Counter(),
    }  # fmt: skip
    assert max(wanted.values()) == 1


def test_every_row_has_evidence_that_exists() -> None:
    """Tests that can be found by their names, or the issue that will bring them."""
    for row in TRACE:
        what, named = row.what[0], named_tests(row.evidence)
        if not named:
            assert LATER.fullmatch(row.evidence), what
        for test in named:
            path, _, name = test.partition("::")
            assert name in names_in(path), f"{what}: {test} does not exist"
        rest = re.sub(r"`[^`]+`|<br>", "", row.evidence)
        assert rest == "" or not named, f"{what}: a row has tests or an issue, and nothing else"


def test_nothing_is_left_for_later() -> None:
    """All five seeds are complete."""
    assert [row.what for row in TRACE if not named_tests(row.evidence)] == []


def test_ranges_and_rows_are_read() -> None:
    """The reader finds what it is there for."""
    cells = "| `A-08..11`, `000 X::y` | `tests/a.py::test_b`<br>`tests/c.py::D::test_e` | z |"
    (row,) = rows(f"| what |\n|---|\n{cells}\n")
    assert row.what == ["A-08", "A-09", "A-10", "A-11", "000 X::y"]
    assert named_tests(row.evidence) == ["tests/a.py::test_b", "tests/c.py::D::test_e"]
    assert "test_ranges_and_rows_are_read" in names_in("tests/test_trace.py")
    assert "TestPages::test_python_runs" in names_in("tests/test_docs.py")
    assert names_in("tests/nope.py") == frozenset()
