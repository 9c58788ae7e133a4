"""The benchmarks run, and what they write lands where it belongs; no figure is judged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.__main__ import NAMES, parser, publish_kept
from tests.benchmarks.figures import Column, Sheet, as_json, as_markdown
from tests.benchmarks.page import figures_region, write_region
from tests.benchmarks.peers.publish import peers_region

ROOT = Path(__file__).resolve().parent.parent
SHEET = Sheet(
    "Runs", (Column("store"), Column("runs/s"), Column("ms", 2)), [["a|b", 1234.5, None]], "Said."
)


@pytest.mark.parametrize("name", NAMES)
def test_each_benchmark_fills_its_sheets(name: str, tmp_path: Path) -> None:
    out, page = tmp_path / "figures.json", tmp_path / "page.md"
    page.write_text("<!-- figures:begin --><!-- figures:end -->")
    command = [sys.executable, "-m", "tests.benchmarks", name, "--tiny"]
    done = subprocess.run(
        [*command, "--json", out, "--page", page],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    sheets = json.loads(out.read_text("utf-8"))["benchmarks"][name]
    assert sheets
    assert all(sheet["rows"] for sheet in sheets)
    assert f"### `{name}`" in page.read_text("utf-8")


def test_a_region_is_replaced_and_the_rest_of_the_page_stays(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Before.\n\n<!-- x:begin -->\nold\n<!-- x:end -->\n\nAfter.\n")
    for text in ("new", "newer"):
        write_region(page, "x", text)
        expected = f"Before.\n\n<!-- x:begin -->\n\n{text}\n\n<!-- x:end -->\n\nAfter.\n"
        assert page.read_text() == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<!-- x:begin -->",
        "<!-- x:end --><!-- x:begin -->",
        "<!-- x:begin --><!-- x:end --><!-- x:begin --><!-- x:end -->",
    ],
)
def test_a_page_without_both_markers_stays_as_it_is(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(ValueError, match="x:"):
        write_region(page, "x", "new")
    assert page.read_text() == text


def test_a_sheet_shows_rounded_figures_and_keeps_raw_ones() -> None:
    assert as_markdown(SHEET).splitlines() == [
        "**Runs**",
        "",
        "| store | runs/s | ms |",
        "| --- | --: | --: |",
        "| a\\|b | 1,234 | – |",
        "",
        "Said.",
    ]
    assert as_json(SHEET)["rows"] == [{"store": "a|b", "runs/s": 1234.5, "ms": None}]


def test_a_row_that_does_not_fit_its_columns_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        Sheet("Runs", (Column("store"),), [["a", 1]])


def test_the_region_of_figures_names_machine_picture_and_benchmarks() -> None:
    region = figures_region({"loop": [SHEET]}, "a machine", "figures.svg")
    assert region.startswith("Measured on a machine.")
    assert "(figures.svg)" in region
    assert "### `loop`" in region


def test_the_region_of_peers_has_medians_and_failed_variants() -> None:
    def line(rate: float) -> str:
        made = {"runs_per_s": rate, "cpu_ms_per_run": 2.0, "failed": 0, "other_cores_busy": 0.5}
        variants = {"quick": {"sequential": made, "concurrent": made}, "broken": {"error": "no"}}
        record = {"peer": "p", "versions": {"p": "1"}, "sqlite": "tuned", "variants": variants}
        return json.dumps(record)

    region = peers_region([line(10), line(30), line(20)])
    assert "| p: quick | 20 | 2.00 | 20 | 2.00 | 0 | – | – |" in region
    assert "| p: broken | – |" in region
    assert "- p: p 1" in region


def test_kept_figures_are_published_like_new_ones(tmp_path: Path) -> None:
    kept, page = tmp_path / "figures.json", tmp_path / "page.md"
    kept.write_text(json.dumps({"machine": "M 1", "benchmarks": {"start": [as_json(SHEET)]}}))
    page.write_text("<!-- figures:begin --><!-- figures:end -->")
    publish_kept(parser().parse_args(["--kept", str(kept), "--page", str(page)]))
    assert as_markdown(SHEET) in page.read_text()
