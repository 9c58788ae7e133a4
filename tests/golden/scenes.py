"""All scenes by name, in the order of the names."""

from __future__ import annotations

from tests.golden import asking, pauses, steps
from tests.golden.record import Scene

__all__ = ["SCENES"]

SCENES: dict[str, Scene] = {
    name: getattr(module, name) for module in (asking, pauses, steps) for name in module.__all__
}
