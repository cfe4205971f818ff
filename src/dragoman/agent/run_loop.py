"""The main loop of a run."""

from __future__ import annotations

from typing import Any

from dragoman.agent.events import RunFinished
from dragoman.agent.orchestrator import Orchestrator, ToolOrchestrator
from dragoman.agent.results import Result
from dragoman.agent.resuming import Beginning, begin
from dragoman.agent.runs import Run
from dragoman.agent.typed_run import TypedOrchestrator
from dragoman.errors import InvalidInputError
from dragoman.tracing.spans import UNTRACED, AgentRun, Untraced
from dragoman.tracing.switch import tracer


async def play(run: Run, beginning: Beginning) -> Result[Any]:
    """Start, iterate until the run is over, and clean up; returns the result."""
    with _traced(run) as traced:
        run.span = traced.span
        orchestrator = _orchestrator(run)
        await run.find_tools()
        await orchestrator.initialize(run)
        try:
            await begin(run, beginning, orchestrator)
            while not run.is_over:
                iteration = orchestrator.iterate(run)
                _expect_no_generator(iteration)
                await iteration
        finally:
            await orchestrator.finalize(run)
        result: Result[Any] = await run.hooked(run.setup.hooks.after_send, run.result)
        await run.emit(RunFinished(result))
        traced.ended(result.usage, result.cost)
    return result


def _traced(run: Run) -> AgentRun | Untraced:
    # Not a coroutine around the run: each one would cost time for every event.
    making = tracer()
    if making is None:
        return UNTRACED
    return AgentRun(making, run.agent, run.setup.model.name, run.session)


def _orchestrator(run: Run) -> Orchestrator:
    if run.setup.orchestrator is not None:
        return run.setup.orchestrator
    return ToolOrchestrator() if run.setup.output is None else TypedOrchestrator()


def _expect_no_generator(iteration: object) -> None:
    """Raise for orchestrators of earlier versions, which used `yield` for their events."""
    if hasattr(iteration, "__aiter__"):
        msg = "an orchestrator's `iterate` must be a coroutine: `await run.emit(…)`, not `yield …`"
        raise InvalidInputError(msg)
