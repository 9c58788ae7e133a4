"""What the served demo prints: conversations to paste into another terminal."""

from __future__ import annotations

from string import Template

from rungent.demo.app import API_PREFIX, TRIP_PATH
from rungent.demo.seed import DEMO_TRIP_ID

__all__ = ["curl_approval", "curl_conversation"]

# Ids are cut out by their shape, so that nothing but curl and grep is needed.
_CONVERSATION = Template("""\
API=$url$prefix
SESSION=$$(curl -s "$$API/sessions" -H 'Content-Type: application/json' \\
  -d '{"resource": {"trip_id": "$trip"}}' | grep -o 'ses_[0-9a-f]\\{32\\}' | head -n 1)
RUN=$$(curl -s "$$API/sessions/$$SESSION/runs" -H 'Content-Type: application/json' \\
  -d '{"input": "Move Asakusa Temple to day 2, then show my trip"}' \\
  | grep -o 'run_[0-9a-f]\\{32\\}' | head -n 1)
curl -sN "$$API/runs/$$RUN/events/stream"
curl -s "$url$trip_path"
""")

_APPROVAL = Template("""\
API=$url$prefix
SESSION=$$(curl -s "$$API/sessions" -H 'Content-Type: application/json' -d '{}' \\
  | grep -o 'ses_[0-9a-f]\\{32\\}' | head -n 1)
RUN=$$(curl -s "$$API/sessions/$$SESSION/runs" -H 'Content-Type: application/json' \\
  -d '{"input": "Delete day 3"}' | grep -o 'run_[0-9a-f]\\{32\\}' | head -n 1)
ASKED=$$(curl -sN "$$API/runs/$$RUN/events/stream" | tee /dev/stderr \\
  | grep -o 'int_[0-9a-f]\\{32\\}' | tail -n 1)
curl -s "$$API/runs/$$RUN/responses" -H 'Content-Type: application/json' \\
  -d "{\\"interaction_id\\": \\"$$ASKED\\", \\"value\\": \\"approve\\"}"
curl -sN "$$API/runs/$$RUN/events/stream?until=terminal"
""")


def curl_conversation(url: str) -> str:
    """Shell lines: create a session, start a run, follow its events, show the trip."""
    return _CONVERSATION.substitute(
        url=url.rstrip("/"), prefix=API_PREFIX, trip=DEMO_TRIP_ID, trip_path=TRIP_PATH
    )


def curl_approval(url: str) -> str:
    """Shell lines: ask to delete a day, read the question, approve it, follow to the end."""
    return _APPROVAL.substitute(url=url.rstrip("/"), prefix=API_PREFIX)
