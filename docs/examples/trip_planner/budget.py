"""What a trip may cost: the answer that the traveller is asked for, and how it is told."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Budget"]


class Budget(BaseModel):
    """What the whole trip may cost."""

    # A part of a trip, which is frozen, too.
    model_config = ConfigDict(frozen=True)

    amount: Annotated[int, Field(ge=1, le=100_000_000, description="In whole units, without cents")]
    currency: Literal["JPY", "EUR", "USD"] = "JPY"
    per_person: Annotated[bool, Field(title="For each person")] = False
    book_by: Annotated[
        date | None, Field(title="Book by", description="The last day for bookings")
    ] = None

    def describe(self) -> str:
        """One line, for a prompt and for the traveller."""
        text = f"{self.amount:,} {self.currency}"
        text = f"{text} for each person" if self.per_person else text
        return text if self.book_by is None else f"{text}, to be booked by {self.book_by}"
