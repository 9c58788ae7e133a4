"""Child processes of the benchmarks: started, spoken to by lines, and ended."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import trio

__all__ = ["ROOT", "Child", "child", "resident_kib"]

ROOT = Path(__file__).resolve().parents[2]
LINE_SECONDS = 120


@dataclass(frozen=True)
class Child:
    """A process whose output is read line by line."""

    process: trio.Process

    async def line(self) -> str:
        """Its next line. Raises RuntimeError when it ended before."""
        read = bytearray()
        assert self.process.stdout is not None
        with trio.fail_after(LINE_SECONDS):
            while not read.endswith(b"\n"):
                some = await self.process.stdout.receive_some(1)
                if not some:
                    raise RuntimeError("the process of a benchmark ended early")
                read += some
        return read.decode().strip()

    async def tell(self, line: str) -> None:
        """Send it a line."""
        assert self.process.stdin is not None
        await self.process.stdin.send_all(f"{line}\n".encode())


@asynccontextmanager
async def child(module: str, *arguments: str) -> AsyncGenerator[Child]:
    """`python -m module arguments…`, killed at the end if it still runs."""
    command = [sys.executable, "-m", module, *arguments]
    process = await trio.lowlevel.open_process(command, stdin=-1, stdout=-1, cwd=ROOT)
    try:
        yield Child(process)
    finally:
        process.kill()
        with trio.move_on_after(10, shield=True):
            await process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with trio.move_on_after(1, shield=True):
                    await pipe.aclose()


def resident_kib(process: str = "self") -> int:
    """Resident memory of a process."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return int(status.partition("VmRSS:")[2].split()[0])
