"""Counting what a task and its descendants do, step by step, and acting in a chosen step.

A task step is what a task does between two checkpoints. Source: docs/testing.md#cancel-everywhere.
"""

from __future__ import annotations

from collections.abc import Callable

import trio
from typing_extensions import override

__all__ = ["TaskSteps"]


class TaskSteps(trio.abc.Instrument):
    """Counts the steps of watched tasks and their descendants, and calls `hit` in one of them.

    Install it with `trio.lowlevel.add_instrument`. `count` is the number of steps so far, and
    `alive` the watched tasks that have not ended.
    """

    def __init__(self, hit_at: int | None, hit: Callable[[], object]) -> None:
        self.count = 0
        self.alive: set[trio.lowlevel.Task] = set()
        self._hit_at = hit_at
        self._hit = hit

    def watch(self, task: trio.lowlevel.Task) -> None:
        """Count this task too, and whatever it starts from now on."""
        self.alive.add(task)

    @override
    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        nursery = task.parent_nursery
        if nursery is not None and nursery.parent_task in self.alive:
            self.alive.add(task)

    @override
    def task_exited(self, task: trio.lowlevel.Task) -> None:
        self.alive.discard(task)

    @override
    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if task not in self.alive:
            return
        self.count += 1
        if self.count == self._hit_at:
            self._hit()
