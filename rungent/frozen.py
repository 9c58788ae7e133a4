"""The base of stored values: frozen pydantic models that are cheap to copy.

Each event of a run makes several copies of records that were checked when they were first made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict
from typing_extensions import override

__all__ = ["Frozen"]


_new = object.__new__
_fill = object.__setattr__


class Frozen(BaseModel):
    """A value that never changes and has no fields but its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    _names: ClassVar[set[str]] = set()

    @override
    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        cls._names = set(cls.model_fields)

    @classmethod
    def unchecked(cls, values: dict[str, Any]) -> Self:
        """A value of exactly these fields, all of them and of the right types."""
        made = _new(cls)
        _fill(made, "__dict__", values)
        # One set for all: nothing changes it, because nothing can be set.
        _fill(made, "__pydantic_fields_set__", cls._names)
        _fill(made, "__pydantic_extra__", None)
        _fill(made, "__pydantic_private__", None)
        return made

    @override
    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        if deep:
            return super().model_copy(update=update, deep=True)
        return self.unchecked({**self.__dict__, **update} if update else self.__dict__.copy())
