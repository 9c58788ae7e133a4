"""The tools that the model may call, in the provider's form: built once for an agent.

Source: docs/tools.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rungent.agent import Agent
from rungent.text import dump_json
from rungent.tools.builtin import builtin_specs, function_spec

__all__ = ["Offer", "Tools", "offer_of"]

AGENTS_REMEMBERED = 64


@dataclass(frozen=True, slots=True)
class Tools:
    """Function specs, shared by requests and changed by nobody; `size` is their bytes in one."""

    specs: tuple[Mapping[str, Any], ...]
    size: int


@dataclass(frozen=True, slots=True)
class Offer:
    """What is offered usually, and in a drive that has a trusted answer."""

    usual: Tools
    answered: Tools


@lru_cache(maxsize=AGENTS_REMEMBERED)
def offer_of(agent: Agent) -> Offer:
    """The tools of an agent behind the built-in ones."""
    usual = [tool for tool in agent.tools if not tool.requires_interaction_response]
    return Offer(
        usual=_tools([*builtin_specs(), *map(function_spec, usual)]),
        answered=_tools([*builtin_specs(), *map(function_spec, agent.tools)]),
    )


def _tools(specs: Iterable[Mapping[str, Any]]) -> Tools:
    kept = tuple(specs)
    return Tools(kept, len(dump_json({"tools": kept}).encode()) - len("{"))
