"""Setting the budget: the tool asks with a form that is made from the model of the answer.

The call goes on with the checked answer in its second function, perhaps in another process.
"""

from __future__ import annotations

from rungent import ToolContext, ToolResult, tool
from rungent.demo.access import changed, refused, services, trip_id
from rungent.demo.budget import Budget
from rungent.demo.trip import TripError

__all__ = ["ask_budget"]


@tool(effect="write", approval="never", title="Set budget")
async def ask_budget(ctx: ToolContext) -> ToolResult:
    """Ask the traveller what the trip may cost, and keep it. Do not ask for it yourself."""
    try:
        # Before the question: an answer would be asked for in vain.
        await services(ctx).trips.get(trip_id(ctx))
    except TripError as refusal:
        return refused(refusal)
    return ToolResult(interaction=ctx.ask(Budget, prompt="What may the trip cost?").keep())


@ask_budget.answered
async def ask_budget_answered(ctx: ToolContext, answer: Budget) -> ToolResult:
    """Keep the budget."""
    change = services(ctx).trips.set_budget(trip_id(ctx), answer)
    return await changed(change, lambda _: f"The budget is {answer.describe()}.")
