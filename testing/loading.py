"""Finding what a command was told to use: `module:attribute`, from the current folder too.

Source: docs/cli.md.
"""

from __future__ import annotations

import importlib
import os
import sys

__all__ = ["TargetError", "load"]


class TargetError(ValueError):
    """What was named cannot be used; the text says why, in one line."""


def load(target: str) -> object:
    """The object that `module:attribute` names. Raises TargetError."""
    module_name, _, attribute = target.partition(":")
    if not module_name or not attribute:
        raise TargetError(f"{target!r} is not module:attribute")
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found: object = importlib.import_module(module_name)
    except ModuleNotFoundError as missing:
        if missing.name is not None and f"{module_name}.".startswith(f"{missing.name}."):
            raise TargetError(f"there is no module {missing.name}") from None
        raise TargetError(f"{module_name} cannot be imported: {missing}") from missing
    except Exception as broken:
        kind = type(broken).__name__
        raise TargetError(f"{module_name} cannot be imported: {kind}: {broken}") from broken
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise TargetError(f"{module_name} has no attribute {attribute}") from None
    return found
