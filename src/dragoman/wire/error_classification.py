"""Maps a provider's error to one of our exception classes.

The most reliable evidence counts first: a specific code, then the wording of the message (gateways
report context overflow as 400, 413 and 502 alike: G6), then the status, then a general error type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dragoman import errors
from dragoman.errors import ProviderError
from dragoman.model.messages import make_message
from dragoman.model.parts import Text
from dragoman.model.responses import Choice, Response
from dragoman.model.roles import Role
from dragoman.model.usage import FinishReason
from dragoman.wire.error_bodies import Fault, lowered, retry_after
from dragoman.wire.key_masking import masked

_Kind = type[ProviderError]

_MESSAGES: dict[_Kind, str] = {
    errors.AuthenticationError: "the provider rejected the API key",
    errors.PermissionDenied: "the API key lacks permission for this request",
    errors.RateLimited: "the provider's rate limit was exceeded",
    errors.QuotaExceeded: "the account has no credit or quota left",
    errors.Overloaded: "the provider is overloaded",
    errors.ContextTooLong: "the request exceeds the model's context window",
    errors.Refused: "the provider's content policy refused the request",
    errors.InvalidRequest: "the provider rejected the request as invalid",
    errors.ModelNotFound: "the provider does not have this model, or not for this API key",
    errors.ServerError: "the provider reported an internal error",
}


def _by_code(codes: dict[_Kind, str]) -> dict[str, _Kind]:
    return {code: kind for kind, listed in codes.items() for code in listed.split()}


# Codes that are conclusive, whatever the status.
_SPECIFIC = _by_code({
    errors.AuthenticationError: (
        "api_key_invalid authentication_error invalid_api_key unauthenticated"
    ),
    errors.PermissionDenied: (
        "country_not_supported permission_denied unsupported_country_region_territory"
    ),
    errors.QuotaExceeded: (
        "billing_error billing_hard_limit_reached billing_not_active insufficient_balance "
        "insufficient_quota payment_method_required payment_required"
    ),
    errors.Overloaded: (
        "capacity_exceeded engine_overloaded_error overloaded_error service_unavailable"
    ),
    errors.ContextTooLong: (
        "context_length_exceeded exceed_context_size_error model_context_window_exceeded "
        "request_too_large too_many_prompt_tokens"
    ),
    errors.Refused: (
        "content_filter bio_policy content_policy_violation image_content_policy_violation "
        "misalignment_policy_violation invalid_prompt moderation_blocked "
        "responsibleaipolicyviolation"
    ),
    errors.ModelNotFound: "deploymentnotfound invalid_model model_not_found",
    # Groq: the model produced an invalid call; a retry may succeed (W112).
    errors.ServerError: "json_validate_failed output_parse_failed tool_use_failed",
    errors.RateLimited: "rate_limit_error rate_limit_exceeded",
})  # fmt: skip
# Types used for many kinds of errors: the status is better evidence.
_GENERAL = _by_code({
    errors.PermissionDenied: "permission_error forbidden",
    errors.RateLimited: "rate_limit resource_exhausted too_many_requests",
    errors.Overloaded: "unavailable",
    errors.ServerError: (
        "deadline_exceeded api_error internal internal_error internal_server_error server_error "
        "timeout_error"
    ),
    # From `data_residency_mismatch` on: codes of failed OpenAI responses, sent without a status.
    errors.InvalidRequest: (
        "bad_request badrequest failed_precondition invalid_argument invalid_request "
        "invalid_request_error not_found not_found_error data_residency_mismatch "
        "empty_image_file failed_to_download_image image_file_not_found image_file_too_large "
        "image_parse_error image_too_large image_too_small invalid_base64_image "
        "invalid_encrypted_content invalid_image invalid_image_format invalid_image_mode "
        "invalid_image_url previous_response_not_found unsupported_image_media_type"
    ),
})  # fmt: skip
_BY_STATUS: dict[int, _Kind] = {
    401: errors.AuthenticationError,
    402: errors.QuotaExceeded,
    403: errors.PermissionDenied,
    408: errors.ServerError,
    413: errors.ContextTooLong,
    429: errors.RateLimited,
    498: errors.Overloaded,  # Groq: flex capacity
    503: errors.Overloaded,
    529: errors.Overloaded,  # Anthropic (W73)
}
_SEALED = frozenset({"invalid_encrypted_content"})
_RETRYABLE = frozenset({408, 409, 425})  # the official SDKs retry these

# The providers' own wording (evidence E), in lower case.
_TOO_LONG = re.compile(
    r"prompt is too long|input is too long|(?:context|window)[ _](?:length|limit|size)"
    r"|context window|maximum context|max_context|prompt too long|too many (?:input )?tokens"
    r"|(?:exceeds?|exceeded) the (?:maximum|max)(?: number of| allowed)*(?: input)? tokens?"
    r"|reduce the length of the|request too large for model|please reduce your message size"
)
_NO_CREDIT = re.compile(
    r"exceeded your current quota|insufficient (?:quota|balance|credit|funds)|credit balance"
    r"|no credits? left|out of credits|never purchased credits|requires more credits"
    r"|payment method is required|spending limit|billing (?:hard )?limit"
)
_WAIT = re.compile(r"(?:try again|retry) in |per (?:minute|hour|day)")
_OVERLOADED = re.compile(
    r"\boverloaded\b|at capacity|over capacity|out of capacity|no available capacity"
)
_REFUSED = re.compile(
    r"content filter|content management policy|content policy|safety system|usage polic(?:y|ies)"
    r"|flagged (?:as|by|for)|responsible ai"
)
_NO_MODEL = re.compile(
    r"\bmodels?\b.{0,200}?(?:not found|does not exist|do(?:es)? not have access|not available)"
    r"|(?:not found|no such|unknown|invalid|unsupported)[ :]{1,2}(?:the )?model\b"
    r"|not a valid model|supported api model names|no endpoints found"
)
_MODEL = re.compile(r"\bmodel|deployment|no endpoints found")
_BAD_KEY = re.compile(
    r"(?:incorrect|invalid|missing|wrong) (?:x-)?api[- ]?key"
    r"|api[- ]?key.{0,40}(?:invalid|not valid|missing|expired|incorrect)|invalid x-api-key"
    r"|authentication fails"
)

# Reasoning that another provider made, or that was altered (W27, W54, W55, W86). Only OpenAI has a
# code for it.
_UNVERIFIED = re.compile(
    r"invalid .{0,2}signature.{0,4} in .{0,2}thinking|encrypted content.{0,200} not be verified"
    r"|thought.signature is not valid|(?:corrupted|invalid) thought.signature"
    r"|thinking.{0,40} blocks in the latest assistant message cannot be modified"
)

# Ordered: messages least likely to quote user content come first.
_WORDS: tuple[tuple[_Kind, re.Pattern[str]], ...] = (
    (errors.QuotaExceeded, _NO_CREDIT),
    (errors.Overloaded, _OVERLOADED),
    (errors.AuthenticationError, _BAD_KEY),
    (errors.Refused, _REFUSED),
    (errors.ContextTooLong, _TOO_LONG),
    (errors.ModelNotFound, _NO_MODEL),
)
_ANY = frozenset(kind for kind, _ in _WORDS)
# Statuses that are nearly conclusive, and the classes that the wording may still select.
_CERTAIN: dict[int, frozenset[_Kind]] = {
    401: frozenset(),
    402: frozenset(),
    403: frozenset(
        {errors.QuotaExceeded, errors.Overloaded, errors.AuthenticationError, errors.Refused}
    ),
    404: frozenset(),
    429: frozenset({errors.QuotaExceeded, errors.Overloaded}),
}


def decode_failure(
    status: object, body: object, headers: object = None, *, provider: str | None = None
) -> ProviderError:
    """Decode any status and body into the matching `ProviderError`; never raises.

    Without a status (mid-stream) the body alone decides. The provider's message may quote user
    content, so it is kept apart from the error's text, with keys masked. Model output in the error
    is kept as a partial response.
    """
    named = lowered(headers)
    fault = Fault(status, body, named)
    kind = classified(fault)
    failure = kind(
        _message(kind, fault),
        provider=provider,
        status=fault.status,
        code=_code(kind, fault),
        param=fault.param,
        request_id=fault.request_id,
        retryable=_retryable(fault, named),
        retry_after=_wait(kind, fault, named),
        partial=_rejected_output(fault),
        detail=masked(fault.text).strip() or None,
    )
    failure.said = fault.text.strip() or None
    return failure


def classified(fault: Fault) -> _Kind:
    """The exception class for an error."""
    if fault.status == 413:  # noqa: PLR2004 - Groq files it under rate_limit_exceeded
        return errors.ContextTooLong
    if fault.is_quota_exhausted and fault.status in {None, 429}:
        return errors.QuotaExceeded
    for word in fault.words:
        if word in _SPECIFIC:
            return _SPECIFIC[word]
    return _by_words(fault) or _by_status(fault)


def _by_words(fault: Fault) -> _Kind | None:
    """The class by the message's wording, unless the status rules it out."""
    text = fault.text.lower()
    for kind, words in _WORDS:
        if kind in _CERTAIN.get(fault.status or 0, _ANY) and words.search(text):
            is_temporary = kind is errors.QuotaExceeded and (fault.wait or _WAIT.search(text))
            if not is_temporary:
                return kind
    return None


def _by_status(fault: Fault) -> _Kind:
    if fault.status == 404:  # noqa: PLR2004 - HTTP's; files and stored items may be missing, too
        return errors.ModelNotFound if _MODEL.search(fault.text.lower()) else errors.InvalidRequest
    if fault.status in _BY_STATUS:
        return _BY_STATUS[fault.status]
    if fault.status is None:
        kinds = [_GENERAL[word] for word in fault.words if word in _GENERAL]
        return kinds[0] if kinds else errors.ServerError
    return errors.InvalidRequest if fault.status < 500 else errors.ServerError  # noqa: PLR2004 - HTTP's


def _code(kind: _Kind, fault: Fault) -> str | None:
    """The provider's code; our own where the provider's is too general to act on."""
    if kind is errors.InvalidRequest and _UNVERIFIED.search(fault.text.lower()):
        return "invalid_thinking_signature" if fault.code not in _SEALED else fault.code
    return fault.code


def _retryable(fault: Fault, headers: Mapping[str, str]) -> bool | None:
    """Whether the provider says that a retry may help; None leaves it to the class."""
    given = headers.get("x-should-retry", "").lower()
    if given in {"true", "false"}:
        return given == "true"
    return True if fault.status in _RETRYABLE else None


def _wait(kind: _Kind, fault: Fault, headers: Mapping[str, str]) -> float | None:
    if fault.status == 529:  # noqa: PLR2004 - Anthropic's: its retry headers can't be trusted (W73)
        return None
    if kind in {errors.RateLimited, errors.Overloaded}:
        given = {"retry-after": fault.wait, **headers} if fault.wait else headers
        return retry_after(given, fault.text)
    plain = {name: headers[name] for name in ("retry-after", "retry-after-ms") if name in headers}
    return retry_after(plain)


def _rejected_output(fault: Fault) -> Response | None:
    """The output that the provider rejected, as a response: text of a call or a message (W112)."""
    if fault.generation is None:
        return None
    is_call = "tool_use_failed" in fault.words
    finish = FinishReason.MALFORMED_CALL if is_call else FinishReason.ERROR
    parts = (Text(fault.generation),) if fault.generation else ()
    message = make_message(Role.ASSISTANT, parts, finish=finish)
    return Response(choices=(Choice(0, message, finish, fault.code),))


def _message(kind: _Kind, fault: Fault) -> str:
    notes = [f"status {fault.status}"] if fault.status is not None else []
    notes += [fault.code] if fault.code else []
    notes += [f"at {fault.param}"] if fault.param else []
    return f"{_MESSAGES[kind]} ({', '.join(notes)})" if notes else _MESSAGES[kind]
