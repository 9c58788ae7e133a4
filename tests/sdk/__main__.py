"""Writes what Python generates for the browser SDK: `python -m tests.sdk`."""

from tests.sdk.generated import GENERATED

for path, made in GENERATED.items():
    path.write_text(made(), encoding="utf-8")
    print(path)
