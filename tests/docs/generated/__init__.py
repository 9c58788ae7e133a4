"""The pages that are made from the code: `python -m tests.docs` writes them anew."""

from __future__ import annotations

from tests.docs.generated.acs import acs_page
from tests.docs.generated.diagram import lifecycle_diagram
from tests.docs.generated.http_api import http_page
from tests.docs.generated.python_api import python_page

__all__ = ["PAGES"]

PAGES = {
    "docs/lifecycle.svg": lifecycle_diagram,
    "docs/reference/acs.md": acs_page,
    "docs/reference/http.md": http_page,
    "docs/reference/python.md": python_page,
}
"""Path in the repository to the function that makes its text."""
