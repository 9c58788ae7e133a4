"""Everything that the application can do, as its tools and its worker reach it."""

from __future__ import annotations

from dataclasses import dataclass

from rungent.demo.imports import ImportService
from rungent.demo.jobs import JobService
from rungent.demo.preferences import PreferenceService
from rungent.demo.service import TripService
from rungent.demo.tables import Database

__all__ = ["Services"]


@dataclass(frozen=True, slots=True)
class Services:
    """The services of one database. They share its one writer."""

    trips: TripService
    preferences: PreferenceService
    imports: ImportService
    jobs: JobService

    @classmethod
    def of(cls, database: Database) -> Services:
        """All services over one database."""
        return cls(
            TripService(database),
            PreferenceService(database),
            ImportService(database),
            JobService(database),
        )
