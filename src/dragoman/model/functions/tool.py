"""`@tool`: turns a Python function into a tool that a model may call."""

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
    """A function with its tool definition. Calling it calls the function.

    `tool(**tool.validate(arguments))` calls it with arguments sent by a model. For type checkers it
    is a `Tool[parameters, returned, context]`. The context is the `RunContext[…]` that the function
    takes, or `object`; an agent with other dependencies can't use the tool.
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
        """Whether an agent must ask for approval before each call, or a function of the arguments
        that decides."""
        self.timeout = timeout
        """Timeout in seconds; `None` uses the agent's."""
        self.enabled = enabled
        """Whether the model is offered the tool, or a function of the `RunContext`, sync or async,
        that decides before each request."""
        self.retries = retries
        """How often in a row the model may retry an invalid or failed call; `None` uses the agent's
        limit."""
        self.concurrency = concurrency
        """Maximum number of concurrent calls of this tool; `None` means no limit of its own."""
        self.max_chars = max_chars
        """Maximum number of characters in a result; `None` uses the agent's limit."""
        self.implements = implements
        """The built-in provider tool that this function implements, such as `Shell()`."""
        self._signature = self._signature_of(function)
        self.context = self._signature.context
        """The type of the injected parameter; `None` if there is none."""
        self._fits = plain_check(definition.parameters)
        functools.update_wrapper(self, function)

    def _signature_of(self, function: Callable[..., Any]) -> Signature:
        return signature_of(function)

    @property
    def name(self) -> str:
        """The name that the model sees."""
        return self.definition.name

    @property
    def offered(self) -> ToolDefinition | ProviderTool:
        """What the model is offered: the definition, or the provider tool that it implements."""
        if self.implements is None or self.implements.function is not None:
            return self.implements or self.definition
        return self.implements.replace(function=self.definition)

    @property
    def call_names(self) -> tuple[str, ...]:
        """The names by which calls may refer to it."""
        others = () if self.implements is None else self.implements.call_names
        return (self.name, *others)

    @property
    def is_async(self) -> bool:
        """Whether calling it returns an awaitable."""
        called = getattr(self.function, "__call__", None)  # noqa: B004 - an object's may be async
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(called)

    @property
    def injected(self) -> tuple[str, ...]:
        """The parameters that the caller fills in, hidden from the model."""
        return self._signature.injected

    def needs_approval(self, arguments: Mapping[str, Any]) -> bool:
        """Whether a call with these arguments needs approval."""
        asked = self.requires_approval
        return bool(asked(arguments)) if callable(asked) else asked

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Validates the arguments, and converts them to the types of the signature.

        Raises `InvalidInputError` with a message that the model can act on.
        """
        arguments = self.adapted(arguments)
        if self._fits is None or not self._fits(arguments):
            self.definition.check_arguments(arguments)
        return self._signature.read(arguments)

    def adapted(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Drops arguments of a provider tool's call for which the function has no parameter."""
        if self.implements is None:
            return arguments
        names = (self.definition.parameters or {}).get("properties", {})
        return self.implements.arguments_for(arguments, names)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Calls the function; positional-only parameters may be passed by name."""
        names = self._signature.positional[len(args) :]
        if not names or names[0] not in kwargs:
            return self.function(*args, **kwargs)
        named: dict[str, Any] = dict(kwargs)
        moved = [named.pop(name) for name in names if name in named]
        call: Callable[..., R_co] = self.function
        return call(*args, *moved, **named)

    def __get__(self, instance: object, _owner: type | None = None) -> Tool[..., R_co, C_contra]:
        """Binds the tool to an instance, if it is a method."""
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
    """The type of `@tool(…)`. See the overloads of `tool`."""

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


# The first overloads match functions that take the run's context among their first four
# parameters: type checkers can't find it at an arbitrary position, nor after a `*`.
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
    """Turns a function into a tool, described by its signature and docstring.

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

    Args:
        function: The function, if the decorator is used without parentheses.
        name: The tool's name; defaults to the function's. Up to 128 letters, digits and the
            characters `_ . : -`; a provider that doesn't take it gets an alias.
        description: The tool's description; defaults to the docstring.
        strict: Whether the provider must enforce the schema.
        requires_approval: Whether an agent must ask for approval before each call, or a function
            of the arguments that decides.
        enabled: Whether the model is offered the tool, or a function of the `RunContext` that
            decides before each request.
        timeout: Timeout of a call, in seconds.
        retries: How often in a row the model may retry an invalid or failed call.
        concurrency: Maximum number of concurrent calls of this tool.
        max_chars: Maximum number of characters in a result.
        implements: The built-in provider tool that the function implements, such as `Shell()` or
            `ApplyPatch()`. It handles the provider's own calls of that tool; models without the
            tool are offered the function.
    """

    def made(function: Callable[..., Any]) -> Tool[..., Any]:
        definition = ToolDefinition.from_function(
            function, name, description, strict=strict, portable=False
        )
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
        msg = f"{what} of a tool must be an integer of at least {least}, or None"
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
        msg = "requires_approval must be True, False or a sync function of the arguments"
        raise InvalidInputError(msg)
    expect_number(timeout, "the timeout of a tool")
    if timeout is not None and not timeout > 0:  # type: ignore[operator]  # it is a number
        msg = "the timeout of a tool must be greater than 0 seconds"
        raise InvalidInputError(msg)
