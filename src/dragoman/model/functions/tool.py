"""`@tool`: a Python function that a model may call."""

from __future__ import annotations

import copy
import functools
import inspect
import typing
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Never, ParamSpec, Protocol, overload

from dragoman.errors import InvalidInputError
from dragoman.model.functions.injection import Injected
from dragoman.model.functions.signatures import Signature, signature_of
from dragoman.model.provider_tools import ProviderTool
from dragoman.model.tools import ToolDefinition
from dragoman.model.type_parameters import TypeVar, filled
from dragoman.model.validation.plain import plain_check
from dragoman.model.value import expect_number

P = ParamSpec("P")
R = typing.TypeVar("R")
R_co = typing.TypeVar("R_co", covariant=True)
Context = typing.TypeVar("Context", bound=Injected | None)
C_contra = TypeVar("C_contra", default=Any, contravariant=True)
Approval = bool | Callable[[Mapping[str, Any]], bool]
Enabled = bool | Callable[[Any], bool | Awaitable[bool]]


class Tool(Generic[P, R_co, C_contra]):
    """A function together with its definition. It is called as the function is.

    `tool(**tool.validate(arguments))` calls it with what a model has sent. To type checkers it is
    a `Tool[parameters, returned, context]`, where the context is the `RunContext[…]` that the
    function wants (`object`, if none): an agent with other dependencies can't have it.
    """

    __name__: str

    if not TYPE_CHECKING:

        def __class_getitem__(cls, arguments: Any) -> Any:
            return super().__class_getitem__(filled(cls.__parameters__, arguments, Any))

    def __init__(  # noqa: PLR0913 - all but the first two by keyword, and optional
        self,
        function: Callable[P, R_co],
        definition: ToolDefinition,
        *,
        requires_approval: Approval = False,
        enabled: Enabled = True,
        timeout: float | None = None,
        retries: int | None = None,
        concurrency: int | None = None,
        max_chars: int | None = None,
        implements: ProviderTool | None = None,
    ) -> None:
        _check_options(requires_approval, timeout)
        _check_enabled(enabled)
        _check_count(retries, 0, "retries")
        _check_count(concurrency, 1, "concurrency")
        _check_count(max_chars, 1, "max_chars")
        _check_implemented(implements)
        self.function = function
        self.definition = definition
        self.requires_approval = requires_approval
        """Whether an agent asks before it runs the tool; or a function of the arguments that says
        so."""
        self.timeout = timeout
        """Seconds that it may take; None: as the agent says."""
        self.enabled = enabled
        """Whether the model is told of it; or a function of the `RunContext` that says so, plain or
        async, before each request."""
        self.retries = retries
        """How often in a row the model may get a call wrong and try again; None: as the agent
        says."""
        self.concurrency = concurrency
        """How many calls of it run at a time; None: as many as of any tool."""
        self.max_chars = max_chars
        """How many characters its results may have; None: as the agent says."""
        self.implements = implements
        """The provider's tool that it is, where the provider has it: its calls are run by this."""
        self._signature = self._signature_of(function)
        self.context = self._signature.context
        """The type of what whoever runs it fills in; None: nothing."""
        self._fits = plain_check(definition.parameters)
        functools.update_wrapper(self, function)

    def _signature_of(self, function: Callable[..., Any]) -> Signature:
        return signature_of(function)

    @property
    def name(self) -> str:
        """The name that the model knows it by."""
        return self.definition.name

    @property
    def offered(self) -> ToolDefinition | ProviderTool:
        """What the model is told of."""
        if self.implements is None or self.implements.function is not None:
            return self.implements or self.definition
        return self.implements.replace(function=self.definition)

    @property
    def call_names(self) -> tuple[str, ...]:
        """What calls of it may be called."""
        others = () if self.implements is None else self.implements.call_names
        return (self.name, *others)

    @property
    def is_async(self) -> bool:
        """Whether calling it gives something to be awaited."""
        called = getattr(self.function, "__call__", None)  # noqa: B004 - an object's may be async
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(called)

    @property
    def injected(self) -> tuple[str, ...]:
        """The parameters that whoever runs it fills in, and no model hears of."""
        return self._signature.injected

    def needs_approval(self, arguments: Mapping[str, Any]) -> bool:
        """Whether a call with these arguments must be approved first."""
        asked = self.requires_approval
        return bool(asked(arguments)) if callable(asked) else asked

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments, checked against the definition and in the types of the signature.

        Raises `InvalidInputError` with a text that the model can act on.
        """
        arguments = self.adapted(arguments)
        if self._fits is None or not self._fits(arguments):
            self.definition.check_arguments(arguments)
        return self._signature.read(arguments)

    def adapted(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments, without what a provider's own call says beyond the parameters."""
        if self.implements is None:
            return arguments
        names = (self.definition.parameters or {}).get("properties", {})
        return self.implements.arguments_for(arguments, names)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function; parameters that it wants by position may be given by name."""
        names = self._signature.positional[len(args) :]
        if not names or names[0] not in kwargs:
            return self.function(*args, **kwargs)
        named: dict[str, Any] = dict(kwargs)
        moved = [named.pop(name) for name in names if name in named]
        call: Callable[..., R_co] = self.function
        return call(*args, *moved, **named)

    def __get__(self, instance: object, _owner: type | None = None) -> Tool[..., R_co, C_contra]:
        """As a method: the tool of that object."""
        if instance is None or not hasattr(self.function, "__get__"):
            return self
        bound = copy.copy(self)
        bound.function = self.function.__get__(instance)
        bound._signature = signature_of(bound.function)
        functools.update_wrapper(bound, bound.function)
        return bound

    def __repr__(self) -> str:
        return f"Tool({self.name})"


class _MakesTool(Protocol):
    """`@tool(…)`, called with the function. See the overloads of `tool`."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], R], /
    ) -> Tool[..., R, Context]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Never, Context, P], R], /
    ) -> Tool[..., R, Context]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Never, Never, Context, P], R], /
    ) -> Tool[..., R, Context]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Never, Never, Never, Context, P], R], /
    ) -> Tool[..., R, Context]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Tool[P, R, object]: ...


# The first ones are for functions that have the run's context among their first four parameters:
# type checkers can't find it among any number of them, nor behind a `*`.
@overload
def tool(function: Callable[Concatenate[Context, P], R], /) -> Tool[..., R, Context]: ...
@overload
def tool(function: Callable[Concatenate[Never, Context, P], R], /) -> Tool[..., R, Context]: ...
@overload
def tool(
    function: Callable[Concatenate[Never, Never, Context, P], R], /
) -> Tool[..., R, Context]: ...
@overload
def tool(
    function: Callable[Concatenate[Never, Never, Never, Context, P], R], /
) -> Tool[..., R, Context]: ...
@overload
def tool(function: Callable[P, R], /) -> Tool[P, R, object]: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    strict: bool = True,
    requires_approval: Approval = False,
    enabled: Enabled = True,
    timeout: float | None = None,
    retries: int | None = None,
    concurrency: int | None = None,
    max_chars: int | None = None,
    implements: ProviderTool | None = None,
) -> _MakesTool: ...
def tool(  # noqa: PLR0913 - all but the function by keyword, and optional
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    strict: bool = True,
    requires_approval: Approval = False,
    enabled: Enabled = True,
    timeout: float | None = None,
    retries: int | None = None,
    concurrency: int | None = None,
    max_chars: int | None = None,
    implements: ProviderTool | None = None,
) -> Any:
    """Make a tool of a function: what the model is told comes from its signature and docstring.

    >>> @tool
    ... def weather(city: str, days: int = 1) -> str:
    ...     '''The weather forecast.
    ...
    ...     Args:
    ...         city: Where.
    ...     '''
    ...     return f"{days} days of rain in {city}"
    >>> weather.definition.parameters["properties"]["city"]
    {'type': 'string', 'description': 'Where.'}
    >>> weather(**weather.validate({"city": "Basel"}))
    '1 days of rain in Basel'

    A tool that `requires_approval` (True, or a function of the arguments) is not run by an agent
    before somebody agreed; the model is told of it while it is `enabled` (True, or a function of
    the `RunContext`). `timeout` is the most seconds that it may take, `retries` how often in a row
    a call may be wrong and be tried again, `concurrency` how many calls of it run at a time, and
    `max_chars` the most characters of a result. A function that
    `implements` a tool which models know (`Shell()`, `ApplyPatch()`) answers the provider's own
    calls of it; a model that has none is told of the function.
    """

    def made(function: Callable[..., Any]) -> Tool[..., Any]:
        definition = ToolDefinition.from_function(function, name, description, strict=strict)
        return Tool(
            function,
            definition,
            requires_approval=requires_approval,
            enabled=enabled,
            timeout=timeout,
            retries=retries,
            concurrency=concurrency,
            max_chars=max_chars,
            implements=implements,
        )

    return made if function is None else made(function)


def _check_count(value: object, least: int, what: str) -> None:
    if value is not None and (type(value) is not int or value < least):
        msg = f"{what} of a tool must be a whole number from {least} on, or None"
        raise InvalidInputError(msg)


def _check_enabled(enabled: object) -> None:
    if not isinstance(enabled, bool) and not callable(enabled):
        msg = "enabled must be True, False or a function of the run's context"
        raise InvalidInputError(msg)


def _check_implemented(implements: object) -> None:
    if implements is None or getattr(implements, "is_run_by_caller", False):
        return
    msg = "implements must be a tool that the caller runs, such as Shell() or ApplyPatch()"
    raise InvalidInputError(msg)


def _check_options(requires_approval: object, timeout: object) -> None:
    is_function = callable(requires_approval) and not inspect.iscoroutinefunction(requires_approval)
    if not isinstance(requires_approval, bool) and not is_function:
        msg = "requires_approval must be True, False or a plain function of the arguments"
        raise InvalidInputError(msg)
    expect_number(timeout, "the timeout of a tool")
    if timeout is not None and not timeout > 0:  # type: ignore[operator]  # it is a number
        msg = "the timeout of a tool must be more than 0 seconds"
        raise InvalidInputError(msg)
