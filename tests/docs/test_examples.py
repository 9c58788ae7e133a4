"""Every example of the documentation runs, as it stands, in the order of its page."""

from __future__ import annotations

import argparse
import itertools
import re
import shlex
import subprocess
import sys
import tomllib
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from rungent.cli import main
from rungent.demo.walkthrough import curl_conversation
from tests.docs.pages import ROOT, blocks, page, page_names

# The blocks in TypeScript are type-checked with the SDK, against its packed form.
LANGUAGES = {"python", "sh", "text", "ts", "tsx"}
# The blocks of these pages are files: tests/migrations and test_getting_started.py run them.
ELSEWHERE = {"docs/migrations.md", "docs/getting-started.md"}
WITH_EXAMPLES = [name for name in page_names() if blocks(name, "python") if name not in ELSEWHERE]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_blocks_of_a_page_run_one_after_the_other(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing of the machine may decide what an example does, and nothing it writes may stay.
    monkeypatch.chdir(tmp_path)
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"):
        monkeypatch.delenv(variable, raising=False)
    module = types.ModuleType("example")
    monkeypatch.setitem(sys.modules, "example", module)
    for block in blocks(name, "python"):
        padded = "\n" * (block.line - 1) + block.text
        code = compile(padded, name, "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102 - running it is the point


def test_a_page_has_only_blocks_that_are_checked_or_plain_text() -> None:
    found = {
        (name, language)
        for name in page_names()
        for language in re.findall(r"^```(\w*)\n(?:.*\n)*?```$", page(name), re.MULTILINE)
    }
    assert {language for _, language in found} <= LANGUAGES


def test_the_readme_shows_what_the_served_demo_prints() -> None:
    shown = [block.text for block in blocks("README.md", "sh")]
    assert curl_conversation("http://127.0.0.1:8000") in shown


def shell_commands() -> Iterator[tuple[str, list[str]]]:
    """Every command of every shell block, pipes taken apart: (page, words), no assignments."""
    for name in page_names():
        for block in blocks(name, "sh"):
            for line in block.text.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                for piped, part in itertools.groupby(words, key="|".__eq__):
                    command = list(part)
                    while command and re.match(r"[A-Z_]+=", command[0]) and "$(" not in command[0]:
                        command.pop(0)
                    if command and not piped:
                        yield name, command


def test_shell_blocks_use_make_targets_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    used = {words[1] for _, words in shell_commands() if words[0] == "make"}
    assert {"demo", "test"} <= used <= targets


PARSE = argparse.ArgumentParser.parse_args


class Parsed(Exception):
    """A command line was understood."""


def understood(words: list[str], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the real command line accepts the words; nothing is executed."""

    def only_parse(self: argparse.ArgumentParser, given: list[str]) -> argparse.Namespace:
        PARSE(self, given)
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", only_parse)
    try:
        main(words)
    except Parsed:
        return True
    except SystemExit:
        return False
    return False


def test_shell_blocks_are_understood_by_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, words in shell_commands():
        if words[0] == "rungent":
            assert understood(words[1:], monkeypatch), f"{name}: {words}"
        for argument in words:
            if words[0] == "make" and argument.startswith("DEMO_ARGS="):
                given = shlex.split(argument.removeprefix("DEMO_ARGS="))
                assert understood(["demo", *given], monkeypatch), f"{name}: {words}"


@pytest.mark.parametrize("program", ["alembic", "hypercorn", "uvicorn"])
def test_shell_blocks_use_options_that_other_programs_have(program: str) -> None:
    used = {
        (words[1] if program == "alembic" else "", word.partition("=")[0])
        for _, words in shell_commands()
        if words[0] == program
        for word in words[1:]
        if word.startswith("-")
    }
    for subcommand, option in used:
        command = [sys.executable, "-m", program, *filter(None, [subcommand]), "--help"]
        shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert re.search(rf"(?<![\w-]){option}\b", shown), f"{program} {subcommand} {option}"


def test_shell_blocks_install_only_extras_that_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set(project["optional-dependencies"])
    for name, words in shell_commands():
        if words[0] == "pip":
            wanted = re.search(r"\[([a-z,]+)\]", words[-1])
            assert wanted is not None, name
            assert set(wanted[1].split(",")) <= extras


def test_no_shell_block_installs_the_other_package() -> None:
    assert not [
        words for _, words in shell_commands() if words[:3] == ["pip", "install", "rungent"]
    ]


def test_every_shell_command_is_of_a_known_program() -> None:
    programs = {
        words[0]
        for _, words in shell_commands()
        if "=" not in words[0] and not words[0].startswith(".venv/")
    }
    usual = {".", "curl", "echo", "grep", "head", "make", "npm", "pip", "python", "python3", "tail"}
    assert programs <= usual | {"alembic", "hypercorn", "rungent", "uvicorn"}
