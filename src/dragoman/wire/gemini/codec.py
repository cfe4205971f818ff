"""The dialect: its functions in one object."""

from __future__ import annotations

from dragoman.wire.codec import Codec, Functions
from dragoman.wire.context import Context
from dragoman.wire.gemini.dialect import DESCRIPTION, STATE_FIELDS, TARGET
from dragoman.wire.gemini.request import decode_request, encode_request
from dragoman.wire.gemini.request_repairs import STEPS
from dragoman.wire.gemini.response import DETAILS, decode_response, encode_response
from dragoman.wire.gemini.response_errors import encode_error
from dragoman.wire.gemini.rules import RULEBOOK
from dragoman.wire.gemini.stream import StreamDecoder
from dragoman.wire.gemini.stream_chunks import Form
from dragoman.wire.gemini.stream_encoder import StreamEncoder
from dragoman.wire.gemini.tools_schemas import GEMINI_JSON_SCHEMA, GEMINI_OUTPUT, GEMINI_PARAMETERS
from dragoman.wire.streams import StreamEncoder as AnyEncoder


class Gemini(Codec):
    """The dialect, with both forms of its streams."""

    def stream_encoder(
        self,
        context: Context | None = None,  # noqa: ARG002 - the form is in the address, not in the request
        *,
        form: Form = "sse",
    ) -> AnyEncoder:
        """Writes a stream, of events or an array."""
        return self._sealing(StreamEncoder(form=form))


DIALECT = Gemini(
    DESCRIPTION,
    TARGET,
    Functions(
        decode_request=decode_request,
        encode_request=encode_request,
        decode_response=decode_response,
        encode_response=encode_response,
        stream_decoder=StreamDecoder,
        stream_encoder=StreamEncoder,
        encode_error=encode_error,
        rulebook=RULEBOOK,
        steps=STEPS,
        front_form="dragoman.wire.gemini.response_front",
        lane="dragoman.wire.gemini.lane",
    ),
    state_fields=STATE_FIELDS,
    usage_details=DETAILS,
    missing_counts=("cache_write",),
    services="dragoman.wire.gemini.services",
    schema_profiles=(GEMINI_PARAMETERS, GEMINI_JSON_SCHEMA, GEMINI_OUTPUT),
)
