"""Fixtures that several folders share."""

from tests.persistence.postgres import postgres_url as postgres_url
from tests.persistence.stores import empty_postgres as empty_postgres
