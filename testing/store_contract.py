"""The contract suite of stores: subclass it, give it a `store` fixture, and run it with pytest.

```python
class TestMyStore(StoreContract):
    @pytest.fixture
    async def store(self) -> AsyncIterator[Store]:
        store = MyStore()
        async with store.open():
            yield store
```

Needs pytest-trio in trio mode. Each test is one sentence of the port. Source: docs/testing.md#stores.
"""

from __future__ import annotations

from rungent.testing.store_contract_changes import ChangeContract
from rungent.testing.store_contract_creation import CreationContract
from rungent.testing.store_contract_questions import QuestionContract
from rungent.testing.store_contract_reads import ReadContract

__all__ = ["StoreContract"]


class StoreContract(ReadContract, CreationContract, ChangeContract, QuestionContract):
    """Every promise of the store port."""
