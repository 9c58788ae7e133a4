"""Builds wheel and sdist, installs the wheel into a clean environment, imports every module."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
READS_ITS_PAGES = """
from rungent.demo.llms import entries, llms_full, page_text
assert all(page_text(entry.path).strip() in llms_full() for entry in entries())
"""


def main() -> int:
    """Returns 0 when the built distributions hold what the checkout holds and import alone."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder)
        _run(sys.executable, "-m", "build", "--outdir", str(target), str(ROOT))
        wheel = next(target.glob("*.whl"))
        modules = _modules(wheel)
        missing = (_expected() - set(modules)) | (_data() - set(zipfile.ZipFile(wheel).namelist()))
        foreign = [name for name in zipfile.ZipFile(wheel).namelist() if not _belongs(name)]
        if foreign:
            print(f"does not belong into the wheel: {', '.join(foreign)}")
            return 1
        if missing:
            print(f"missing from the wheel: {', '.join(sorted(missing))}")
            return 1
        environment = target / "venv"
        venv.create(environment, with_pip=True)
        python = str(environment / "bin" / "python")
        _run(python, "-m", "pip", "install", "--quiet", f"{wheel}[demo,fastapi,postgres,testing]")
        imports = "; ".join(f"import {name}" for name in modules)
        _run(python, "-Ic", imports, cwd=target)
        # Reads the built page, which is there without Node.
        page = "from rungent.demo.page import page_blueprint; page_blueprint()"
        _run(python, "-Ic", page, cwd=target)
        _run(python, "-Ic", READS_ITS_PAGES, cwd=target)
    print(f"wheel: {len(modules)} modules import")
    return 0


def _belongs(name: str) -> bool:
    top = Path(name).parts[0]
    return top == "rungent" or top.endswith(".dist-info")


def _modules(wheel: Path) -> list[str]:
    names = zipfile.ZipFile(wheel).namelist()
    paths = [Path(name) for name in names if name.endswith(".py")]
    return sorted(".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in paths)


def _expected() -> set[str]:
    """Every module of the checkout; the links inside `rungent` lead to the other folders."""
    names: set[str] = set()
    folders = [ROOT / "rungent", *(p for p in (ROOT / "rungent").iterdir() if p.is_symlink())]
    for folder in folders:
        for path in folder.rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            names.add(".".join(parts).removesuffix(".__init__"))
    return names


def _data() -> set[str]:
    """What the example needs besides modules: its instructions, and the built page."""
    folder = ROOT / "rungent" / "demo"
    files = [folder / "instructions.md", *(folder / "static").iterdir()]
    return {str(path.relative_to(ROOT)) for path in files}


def _run(*command: str, cwd: Path = ROOT) -> None:
    done = subprocess.run(command, cwd=cwd, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    sys.exit(main())
