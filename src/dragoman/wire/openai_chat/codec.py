"""The `openai-chat` codec: the functions of this dialect in one object."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.model.frozen import EMPTY
from dragoman.model.requests import Request
from dragoman.wire.codec import Codec, Functions, on_use
from dragoman.wire.context import NOTHING, Context
from dragoman.wire.openai_chat.dialect import DESCRIPTION, STATE_FIELDS, TARGET
from dragoman.wire.openai_chat.request import asks_for_usage, decode_request, encode_request
from dragoman.wire.openai_chat.request_repairs import STEPS
from dragoman.wire.openai_chat.settings import PLACES
from dragoman.wire.openai_strict_schemas import OPENAI, OPENAI_STRICT
from dragoman.wire.restoring import restoring
from dragoman.wire.streams import StreamDecoder as AnyDecoder
from dragoman.wire.streams import StreamEncoder as AnyEncoder
from dragoman.wire.target import Target

_HOME = "dragoman.wire.openai_chat"
_OPTIONS = "stream_options"
_stream_decoder = on_use(f"{_HOME}.stream", "StreamDecoder")
_stream_encoder = on_use(f"{_HOME}.stream_encoder", "StreamEncoder")


class OpenAIChat(Codec):
    """The codec, with options for details in which servers' streams differ."""

    def stream_decoder(
        self, context: Context | None = None, *, ends_with_done: bool = True
    ) -> AnyDecoder:
        """A stream decoder. Servers that never send `[DONE]` need `ends_with_done=False`."""
        known = context or NOTHING
        is_expected = ends_with_done and known.ends_with_done
        return restoring(_stream_decoder(ends_with_done=is_expected), known)

    def stream_encoder(
        self, context: Context | None = None, *, include_usage: bool = False
    ) -> AnyEncoder:
        """A stream encoder, with the usage if the client requested it (W9)."""
        request = None if context is None else context.request
        is_requested = include_usage or (request is not None and asks_for_usage(request))
        return self._sealing(_stream_encoder(include_usage=is_requested), context)

    def with_usage_requested(
        self, request: Request, target: Target, *, always: bool = False
    ) -> Request:
        """The request with `include_usage` (W9), unless it already sets it or the host refuses it.

        With `always`, usage is requested even if the request turns it off.
        """
        own = request.extras.get(self.name, EMPTY)
        if not target.fields.accepts(_OPTIONS, target.fields.in_request):
            return request
        given = own.get(_OPTIONS)
        if _OPTIONS in own and not always:
            return request
        options = {**(given if isinstance(given, Mapping) else EMPTY), "include_usage": True}
        extras = {**own, _OPTIONS: options}
        return request.replace(extras={**request.extras, self.name: extras})


DIALECT = OpenAIChat(
    DESCRIPTION,
    TARGET,
    Functions(
        decode_request=decode_request,
        encode_request=encode_request,
        decode_response=on_use(f"{_HOME}.response", "decode_response"),
        encode_response=on_use(f"{_HOME}.response", "encode_response"),
        stream_decoder=_stream_decoder,
        stream_encoder=_stream_encoder,
        encode_error=on_use(f"{_HOME}.response", "encode_error"),
        rulebook=f"{_HOME}.rules",
        steps=STEPS,
        places=PLACES,
        further_fields=frozenset(
            {"prompt", "suffix", "echo", "input", "dimensions", "encoding_format"}
        ),
        front_form=f"{_HOME}.response_front",
        plain=f"{_HOME}.plain",
        lane=f"{_HOME}.lane",
    ),
    state_fields=STATE_FIELDS,
    usage_details=f"{_HOME}.response",
    services=f"{_HOME}.services",
    schema_profiles=(OPENAI, OPENAI_STRICT),
)
