"""Writes the logs and states anew: `python -m tests.golden`."""

from tests.golden.record import FOLDER, log_of, states_of
from tests.golden.scenes import SCENES

for name, scene in SCENES.items():
    log = log_of(scene)
    (FOLDER / f"{name}.jsonl").write_text(log, encoding="utf-8")
    (FOLDER / f"{name}.state.json").write_text(states_of(log), encoding="utf-8")
    print(f"{name}: {log.count(chr(10))} events")
