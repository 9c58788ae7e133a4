"""Agents are checked when they are made, and can describe their tools."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import pytest

from rungent.agent import Agent, RunActivity
from rungent.tools import AnyTool, ToolContext, tool


@tool(effect="read", approval="never", description="Find a city.")
async def find(
    ctx: ToolContext,
    city: Annotated[str, "Name of\nthe city."],
    limit: int = 5,
    mode: int | str = 1,
) -> None: ...


@tool(effect="destructive", approval="always", confirmation="Delete\n {city}?")
async def delete(ctx: ToolContext, city: str) -> None:
    """Delete a city.

    For good.
    """


@tool(effect="write", approval="never", requires_interaction_response=True)
async def go_on(ctx: ToolContext) -> None:
    """Go on."""


def named(name: str) -> AnyTool:
    return tool(effect="read", approval="never", name=name, description="X.")(find.function)


def test_an_agent_cleans_its_instructions_and_keeps_its_tools() -> None:
    agent = Agent(
        "guide",
        """
        Be kind.
          Be short.
        """,
        [find, delete],
    )
    assert agent.instructions == "Be kind.\n  Be short."
    assert agent.tools == (find, delete)
    assert (agent.tool("delete"), agent.tool("report_progress")) == (delete, None)


@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""},
        {"name": "my guide"},
        {"name": "my-guide"},
        {"name": "a" * 129},
        {"name": None},
        {"instructions": " \n "},
        {"instructions": None},
        {"model": " "},
        {"tools": [find, named("find")]},
        {"tools": [named("request_input")]},
        {"tools": [named("report_progress")]},
    ],
)
def test_a_bad_agent_is_a_value_error(fields: dict[str, Any]) -> None:
    make: Any = Agent
    with pytest.raises(ValueError, match=r"."):
        make(**{"name": "guide", "instructions": "Be kind.", **fields})


@pytest.mark.parametrize("fields", [{"tools": [find.function]}, {"context": "text"}])
def test_what_is_no_tool_or_no_callable_is_a_type_error(fields: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        Agent("guide", "Be kind.", **fields)


def test_an_agent_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Agent("guide", "Be kind.").name = "other"  # type: ignore[misc]


def test_instructions_can_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "guide.md"
    path.write_bytes("\ufeff# Führer\n\nSei nett.\n".encode())
    agent = Agent.from_markdown(name="guide", instructions=path, tools=[find], model="m")
    assert (agent.instructions, agent.tools, agent.model) == ("# Führer\n\nSei nett.", (find,), "m")


def test_activity_texts_fall_back_to_each_other() -> None:
    only = RunActivity(" Working ")
    assert (only.message, only.waiting_message, only.long_wait_message) == ("Working",) * 3
    assert (only.continuation_message, only.public) == ("Working", None)
    more = RunActivity("A", waiting_message="B", continuation_message="C", public={"k": (1,)})
    assert (more.long_wait_message, more.continuation_message) == ("B", "C")
    assert more.public == {"k": [1]}


@pytest.mark.parametrize(
    "fields",
    [{"message": " "}, {"waiting_message": ""}, {"long_wait_message": "x" * 281}, {"public": [1]}],
)
def test_a_bad_activity_is_a_value_error(fields: dict[str, Any]) -> None:
    make: Any = RunActivity
    with pytest.raises(ValueError, match="must be"):
        make(**{"message": "Working", **fields})


SKILL = """\
# guide tools

Draft made from the tools of one agent. It lists capabilities and routes nothing.
Call these tools through the MCP connector of this product; do not make up REST paths.
Never ask for or reuse the product's own session token.
If the tools are not available, connect through the sign-in of your MCP client first.

## Tools

### `find`

Find a city.

- effect: `read`
- approval: `never`
- arguments:
  - `city` (required): Name of the city.
  - `limit` (optional): integer
  - `mode` (optional):

### `delete`

Delete a city.

For good.

- effect: `destructive`
- approval: `always`
- confirmation: Delete {city}?
- arguments:
  - `city` (required): string
"""


def test_the_skill_lists_the_tools_that_clients_can_call() -> None:
    agent = Agent("guide", "Be kind.", [find, go_on, delete])
    assert agent.export_skill() == SKILL
    titled = agent.export_skill("Travel", "  Ask first.\n")
    assert titled == SKILL.replace("guide tools", "Travel") + "\n## Host notes\n\nAsk first.\n"
