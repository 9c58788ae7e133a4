"""The pure core: which action a run needs next, and what an outcome changes.

Nothing here knows trio, a store, a clock or randomness. Source: docs/runs.md.
"""

from rungent._lifecycle.actions import Action as Action
from rungent._lifecycle.advance import advance as advance
from rungent._lifecycle.choose import next_action as next_action
from rungent._lifecycle.endings import cancel as cancel
from rungent._lifecycle.endings import fail as fail
from rungent._lifecycle.opening import proceed as proceed
from rungent._lifecycle.transition import Facts as Facts
from rungent._lifecycle.transition import Transition as Transition

__all__ = ["Action", "Facts", "Transition", "advance", "cancel", "fail", "next_action", "proceed"]
