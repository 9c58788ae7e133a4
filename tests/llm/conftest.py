"""Fixtures for the tests of models: the real model server."""

from tests.modelserver.fixture import own_server as own_server
from tests.modelserver.fixture import scripted_gguf as scripted_gguf
from tests.modelserver.fixture import scripted_server as scripted_server
