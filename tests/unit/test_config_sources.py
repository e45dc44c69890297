"""Where values come from, and that everything told about a setting comes from its declaration."""

import re
from pathlib import Path

import pytest

from chatserve.command_line import ModelsConfig, load_config
from chatserve.config import EngineConfig, GatewayConfig
from chatserve.environment import default_data_dir
from chatserve.errors import ConfigError
from chatserve.settings import settings_of, settings_table, to_environ

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"


def test_flag_beats_variable_and_variable_beats_default() -> None:
    environ = {"CHATSERVE_PAGE_SIZE": "32", "CHATSERVE_MAX_NUM_SEQS": "8"}

    config = load_config(["engine", "--page-size", "64"], environ)

    assert isinstance(config, EngineConfig)
    assert (config.page_size, config.max_num_seqs) == (64, 8)
    assert config.max_num_batched_tokens == EngineConfig().max_num_batched_tokens


def test_empty_variable_counts_as_unset() -> None:
    config = load_config(["gateway"], {"CHATSERVE_PORT": ""})

    assert isinstance(config, GatewayConfig)
    assert config.port == GatewayConfig().port


@pytest.mark.parametrize(("text", "is_on"), [("1", False), ("TRUE", False), ("no", True)])
def test_variable_of_a_switch_says_yes_or_no(text: str, is_on: bool) -> None:
    config = load_config(["engine"], {"CHATSERVE_NO_PREFIX_CACHE": text})

    assert isinstance(config, EngineConfig)
    assert config.prefix_cache is is_on


def test_bad_variable_is_named_in_the_message() -> None:
    with pytest.raises(ConfigError, match=r"CHATSERVE_NO_PREFIX_CACHE\): expected yes or no"):
        load_config(["engine"], {"CHATSERVE_NO_PREFIX_CACHE": "perhaps"})


@pytest.mark.parametrize("argv", [[], ["cook"], ["--port", "80"]])
def test_missing_or_unknown_command_is_refused_in_one_line(argv: list[str]) -> None:
    with pytest.raises(ConfigError) as refusal:
        load_config(argv, {})

    assert "\n" not in str(refusal.value)


def test_models_takes_what_to_do_and_a_name() -> None:
    bare = load_config(["models"], {})
    fetching = load_config(["models", "fetch", "smollm2-135m-instruct"], {})

    assert isinstance(bare, ModelsConfig)
    assert bare.action == "list"
    assert isinstance(fetching, ModelsConfig)
    assert (fetching.action, fetching.model) == ("fetch", "smollm2-135m-instruct")


def test_child_reads_the_same_config_from_its_variables(tmp_path: Path) -> None:
    engine = EngineConfig(data_dir=tmp_path, kv_memory_bytes=2**20, prefix_cache=False)
    gateway = GatewayConfig(
        host="::1",
        redis_url="unix:///tmp/store.sock?db=0",
        disconnect_grace_s=0.25,
        allowed_hosts=("a.example", "b.example"),
        merge_worker_metrics=True,
    )

    assert load_config(["engine"], to_environ(engine)) == engine
    assert load_config(["gateway"], to_environ(gateway)) == gateway


def test_value_of_the_child_beats_a_variable_of_the_parent() -> None:
    inherited = {"CHATSERVE_NO_PREFIX_CACHE": "yes", "CHATSERVE_NUM_PAGES": "7"}

    config = load_config(["engine"], {**inherited, **to_environ(EngineConfig())})

    assert config == EngineConfig()


def test_data_dir_follows_the_xdg_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/srv/data")

    assert default_data_dir() == Path("/srv/data/chatserve")


def test_relative_xdg_variable_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "data")
    monkeypatch.setenv("HOME", "/home/reader")

    assert default_data_dir() == Path("/home/reader/.local/share/chatserve")


@pytest.mark.parametrize(
    ("command", "config_types"),
    [
        ("serve", (EngineConfig, GatewayConfig)),
        ("gateway", (GatewayConfig,)),
        ("engine", (EngineConfig,)),
    ],
)
def test_help_explains_every_setting_with_default_and_variable(
    command: str, config_types: tuple[type, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        load_config([command, "--help"], {})

    text = " ".join(capsys.readouterr().out.split())
    assert ended.value.code == 0
    for _, known in settings_of(*config_types):
        assert f"{known.flag} " in text
        assert re.search(rf"\(default: [^)]+.*{known.variable}\)", text)


def test_readme_has_the_current_table_of_settings() -> None:
    assert settings_table(EngineConfig, GatewayConfig) in README.read_text(), "run `make fmt`"


def test_one_module_reads_the_environment() -> None:
    readers = [
        file.relative_to(ROOT)
        for file in sorted((ROOT / "chatserve").rglob("*.py"))
        if re.search(r"os\.environ|os\.getenv|import environ", file.read_text())
    ]

    assert readers == [Path("chatserve/environment.py")]


def test_no_variable_turns_the_plan_into_json() -> None:
    assert load_config(["plan"], {"CHATSERVE_JSON": "yes"}) == load_config(["plan"], {})
