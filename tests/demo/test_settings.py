"""What options and environment decide, and the text that the demo prints for pasting."""

from __future__ import annotations

from pathlib import Path

import pytest

from rungent.demo.settings import (
    DemoOptions,
    Provider,
    UsageError,
    choose_provider,
    database_path,
)


def test_without_a_model_name_the_offline_model_is_used() -> None:
    environ = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "https://example.test/v1"}
    assert choose_provider(DemoOptions(), {}) is None
    assert choose_provider(DemoOptions(), environ) is None


def test_options_win_over_the_environment() -> None:
    environ = {
        "OPENAI_MODEL": "env",
        "OPENAI_API_KEY": "env-key",
        "OPENAI_BASE_URL": "https://env.test/v1",
    }
    assert choose_provider(DemoOptions(), environ) == Provider(
        "https://env.test/v1", "env", "env-key"
    )
    options = DemoOptions(model="m", model_url="https://o.test/v1", api_key="k")
    assert choose_provider(options, environ) == Provider("https://o.test/v1", "m", "k")


def test_a_model_name_alone_means_the_default_address_without_a_key() -> None:
    assert choose_provider(DemoOptions(model="m"), {}) == Provider(
        "https://api.openai.com/v1", "m", None
    )


@pytest.mark.parametrize(
    "options", [DemoOptions(model_url="https://o.test/v1"), DemoOptions(api_key="k")]
)
def test_an_address_or_a_key_without_a_model_is_wrong_usage(options: DemoOptions) -> None:
    with pytest.raises(UsageError, match="--model"):
        choose_provider(options, {})


@pytest.mark.parametrize(
    "address", ["example.test/v1", "ftp://example.test", "http://", "http://host:port/v1"]
)
def test_an_address_that_is_none_is_wrong_usage(address: str) -> None:
    with pytest.raises(UsageError, match="https://host/v1"):
        choose_provider(DemoOptions(model="m"), {"OPENAI_BASE_URL": address})


@pytest.mark.parametrize("key", ["clé", "k\nx", " k1 ", "k\x00"])
def test_a_key_that_no_header_can_hold_is_wrong_usage(key: str) -> None:
    with pytest.raises(UsageError, match="printable ASCII") as refused:
        choose_provider(DemoOptions(model="m"), {"OPENAI_API_KEY": key})
    assert key not in str(refused.value)


def test_keys_are_not_shown() -> None:
    assert Provider("https://user:secret@example.test:8443/v1", "m", None).host == (
        "example.test:8443"
    )
    assert "secret" not in repr(DemoOptions(api_key="secret"))
    assert "secret" not in repr(Provider("u", "m", "secret"))


def test_the_database_is_a_file_in_the_users_data_folder_unless_told_otherwise() -> None:
    default = database_path(None)
    assert default is not None
    assert default.name == "demo.sqlite3"
    assert database_path("x/y.db") == Path("x/y.db")
    assert database_path(":memory:") is None
