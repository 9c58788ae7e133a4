"""Where runs live: the port and the in-memory implementation."""

from rungent.store.memory import MemoryStore as MemoryStore
from rungent.store.port import Store as Store

__all__ = ["MemoryStore", "Store"]
