"""What the playground is told when it starts."""

from __future__ import annotations

from service.api.models.common import Shown


class ShownStart(Shown):
    """Whether a key is needed, and questions to begin with."""

    demo: bool
    examples: list[str]
