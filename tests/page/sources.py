"""Where the sources of the page are."""

from __future__ import annotations

from pathlib import Path

__all__ = ["AXE", "PAGE"]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "trip_planner" / "page"
AXE = PAGE / "node_modules" / "axe-core" / "axe.min.js"
"""The accessibility check; `python -m tests.page.check` puts it there."""
