"""A report for people, as a table, and for CI, as JUnit XML. Pure.

Source: docs/baselines.md#report.
"""

from __future__ import annotations

from xml.etree import ElementTree

from rungent.testing.baseline.report import BaselineReport

__all__ = ["as_junit", "as_table", "progress_line"]

BAR = 20


def progress_line(done: int, total: int, name: str) -> str:
    """How far it is, in one line."""
    full = BAR * done // total if total else BAR
    return f"[{'#' * full}{'.' * (BAR - full)}] {done}/{total} {name}"


def as_table(report: BaselineReport) -> str:
    """One line for each case, what failed below it, and the rates at the end."""
    shown = report.by_case()
    width = max((len(name) for name in shown), default=0)
    lines: list[str] = []
    for name, (passed, played) in shown.items():
        own = [result for result in report.results if result.name == name]
        seconds = max(result.measures.seconds for result in own)
        rate = f"  {passed}/{played} = {passed / played:.0%}" if played > 1 else ""
        verdict = "ok" if passed == played else "FAILED"
        lines.append(f"{verdict:<6}  {name:<{width}}  {seconds:7.2f} s{rate}")
        lines += [f"        {error}" for error in dict.fromkeys(r.error for r in own) if error]
    for key, value in report.metrics().items():
        named = key.replace("_", " ")
        share = key.endswith(("_rate", "_accuracy")) and value is not None
        lines.append(f"{named}: {f'{value:.1%}' if share else '-' if value is None else value}")
    return "\n".join(lines)


def as_junit(report: BaselineReport, name: str) -> str:
    """The report as JUnit XML, which CI systems show."""
    failures = sum(not result.passed for result in report.results)
    seconds = sum(result.measures.seconds for result in report.results)
    suite = ElementTree.Element(
        "testsuite",
        name=name,
        tests=str(len(report.results)),
        failures=str(failures),
        errors="0",
        time=f"{seconds:.3f}",
    )
    for result in report.results:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=name,
            name=result.name,
            time=f"{result.measures.seconds:.3f}",
        )
        if result.error is not None:
            text = _printable(result.error)
            failure = ElementTree.SubElement(case, "failure", message=text.splitlines()[0])
            failure.text = text
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _printable(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return "".join(
        c if c in "\n\t" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text
    )
