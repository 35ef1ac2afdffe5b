"""Configuration: which source wins, what is refused, and what is never shown."""

from pathlib import Path

import pytest

from service.errors import SettingsError
from service.settings import load


def write(home: Path, text: str) -> Path:
    home.mkdir(exist_ok=True)
    (home / "settings.toml").write_text(text)
    return home


def test_a_flag_wins_over_the_environment_over_the_file_over_the_default(tmp_path: Path) -> None:
    home = write(tmp_path, "CONSUMERS = 3\nLEASE_S = 30\nMAX_ATTEMPTS = 5\n")
    found = load(
        home=home, environment={"GAPLESS_LEASE_S": "40", "GAPLESS_MAX_ATTEMPTS": "6"}, flags={"max_attempts": 7}
    )
    values = (
        found.settings.consumers,
        found.settings.lease_s,
        found.settings.max_attempts,
        found.settings.batch_events,
    )
    assert values == (3, 40, 7, 10)
    sources = [found.sources[name] for name in ("consumers", "lease_s", "max_attempts", "batch_events")]
    assert sources == ["settings.toml", "GAPLESS_LEASE_S", "flag", "default"]


@pytest.mark.parametrize("text", ["CONSUMER = 3", "consumers = 3\nBATCH_EVENT = 1"])
def test_an_unknown_name_in_the_file_is_an_error_that_suggests_the_nearest(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingsError, match=r"settings\.toml.*Did you mean (CONSUMERS|BATCH_EVENTS)\?"):
        load(home=write(tmp_path, text), environment={})


def test_an_unknown_variable_is_a_warning(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="CONSUMERS"):
        assert load(home=tmp_path, environment={"GAPLESS_CONSUMER": "3"}).settings.consumers == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LEASE_S", "soon"),
        ("LEASE_S", "-1"),
        ("LEASE_S", "nan"),
        ("CONSUMERS", "0"),
        ("CONSUMERS", "1.5"),
        ("PROVIDER", "magic"),
        ("CHROMA", "somewhere"),
        ("PORT", "70000"),
        ("RETENTION_DAYS", "inf"),
        ("ON_BUDGET", "ignore"),
    ],
)
def test_an_unusable_value_is_an_error_that_names_the_setting(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name):
        load(home=tmp_path, environment={f"GAPLESS_{name}": value})


@pytest.mark.parametrize("text", ["CONSUMERS = ", "\x00", "= 3"])
def test_a_file_that_cannot_be_read_is_an_error_that_names_it(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingsError, match=r"settings\.toml"):
        load(home=write(tmp_path, text), environment={})


@pytest.mark.parametrize("value", ["0.5", "2", "1e2"])
def test_seconds_take_decimals(tmp_path: Path, value: str) -> None:
    assert load(home=tmp_path, environment={"GAPLESS_BATCH_WAIT_S": value}).settings.batch_wait_s == float(value)


def test_a_key_is_masked_and_no_error_repeats_it(tmp_path: Path) -> None:
    found = load(home=tmp_path, environment={"GAPLESS_ANTHROPIC_API_KEY": "sk-very-secret"})
    assert found.masked()["ANTHROPIC_API_KEY"] == "***"
    assert "sk-very-secret" not in str(found.masked())
    home = write(tmp_path, 'ANTHROPIC_API_KEY = ["sk-very-secret"]\n')
    with pytest.raises(SettingsError) as caught:
        load(home=home, environment={})
    assert "sk-very-secret" not in str(caught.value)


def test_the_providers_own_variables_are_read_only_when_it_is_chosen(tmp_path: Path) -> None:
    own = {"ANTHROPIC_API_KEY": "sk-host", "ANTHROPIC_BASE_URL": "http://localhost:1"}
    assert load(home=tmp_path, environment=own).settings.anthropic_api_key == ""
    chosen = load(home=tmp_path, environment={**own, "GAPLESS_PROVIDER": "anthropic"})
    assert chosen.settings.anthropic_api_key == "sk-host"
    ours = {**own, "GAPLESS_PROVIDER": "anthropic", "GAPLESS_ANTHROPIC_API_KEY": "sk-ours"}
    assert load(home=tmp_path, environment=ours).settings.anthropic_api_key == "sk-ours"


def test_two_data_folders_are_told_apart_by_one_variable(tmp_path: Path) -> None:
    homes = [load(environment={"GAPLESS_HOME": str(tmp_path / name)}).database for name in ("a", "b")]
    assert homes == [tmp_path / "a" / "gapless.db", tmp_path / "b" / "gapless.db"]
