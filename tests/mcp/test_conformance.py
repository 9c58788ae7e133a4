"""The official conformance suite, in its stable and in its newest release.

Whatever it finds must be in a file of expected failures, which names what is not offered.
"""

from __future__ import annotations

import re

import pytest
import trio

from tests.mcp.conformance_host import conformance_host
from tests.mcp.node import FOLDER, NEWEST, STABLE, run_node

STABLE_FAILURES = str(FOLDER / "expected_failures_stable.yaml")
NEWEST_FAILURES = str(FOLDER / "expected_failures_newest.yaml")
TASKS = (
    "tasks-capability-negotiation",
    "tasks-dispatch-and-envelope",
    "tasks-lifecycle",
    "tasks-mrtr-composition",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-request-state-removal",
    "tasks-required-task-error",
    "tasks-wire-fields",
)
# What must have been looked at, so that a suite which skips everything does not count.
OFFERED = {
    STABLE: {"server-initialize", "ping", "tools-list", "tools-call-error"},
    NEWEST: {"tools-list", "tools-call-simple-text", "tools-call-error"},
}


def passed(output: str) -> set[str]:
    """The scenarios that passed at least one check and failed none."""
    return set(re.findall(r"^✓ ([\w-]+): [1-9]\d* passed, 0 failed", output, re.MULTILINE))


@pytest.mark.usefixtures("judges")
@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", "2026-07-28"])
async def test_the_newest_suite_finds_nothing_unexpected(version: str) -> None:
    with trio.fail_after(300):
        async with conformance_host() as url:
            arguments = ("--suite", "all", "--expected-failures", NEWEST_FAILURES)
            code, output = await run_node(
                NEWEST, "server", "--url", url, "--spec-version", version, *arguments
            )
    assert code == 0, output
    assert passed(output) >= OFFERED[NEWEST], output


@pytest.mark.usefixtures("judges")
async def test_the_stable_suite_finds_nothing_unexpected() -> None:
    with trio.fail_after(300):
        async with conformance_host() as url:
            arguments = ("--suite", "all", "--expected-failures", STABLE_FAILURES)
            code, output = await run_node(STABLE, "server", "--url", url, *arguments)
    assert code == 0, output
    assert passed(output) >= OFFERED[STABLE], output


@pytest.mark.usefixtures("judges")
async def test_the_tasks_extension_is_what_the_newest_suite_expects() -> None:
    """The scenarios of an extension are not part of a run of all, and mostly wait."""
    outputs: dict[str, tuple[int, str]] = {}

    async def judge(url: str, scenario: str) -> None:
        arguments = ("--scenario", scenario, "--force", "--expected-failures", NEWEST_FAILURES)
        outputs[scenario] = await run_node(
            NEWEST, "server", "--url", url, "--spec-version", "2026-07-28", *arguments
        )

    with trio.fail_after(300):
        async with conformance_host() as url, trio.open_nursery() as nursery:
            for scenario in TASKS:
                nursery.start_soon(judge, url, scenario)
    assert set(outputs) == set(TASKS)
    for scenario, (code, output) in outputs.items():
        assert code == 0, output
        assert re.search(r"Passed: [1-9]", output), (scenario, output)
