"""What each setting accepts, and how it says no."""

from dataclasses import replace
from pathlib import Path

import pytest

from chatserve.command_line import load_config
from chatserve.config import EngineConfig, GatewayConfig, ServeConfig
from chatserve.errors import ConfigError


def engine(*flags: str) -> EngineConfig:
    config = load_config(["engine", *flags], {})
    assert isinstance(config, EngineConfig)
    return config


def gateway(*flags: str) -> GatewayConfig:
    config = load_config(["gateway", *flags], {})
    assert isinstance(config, GatewayConfig)
    return config


@pytest.mark.parametrize(
    ("text", "num_bytes"),
    [
        ("4096", 4096),
        ("9000B", 9000),
        ("512MiB", 512 * 2**20),
        ("2GiB", 2 * 2**30),
        ("2GB", 2 * 10**9),
        ("1.5 gib", 3 * 2**29),
    ],
)
def test_memory_is_read_with_binary_and_decimal_units(text: str, num_bytes: int) -> None:
    config = engine("--kv-memory", text)

    assert config.kv_memory_bytes == num_bytes


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--page-size 24", "--page-size (CHATSERVE_PAGE_SIZE): must be a power of two from 1"),
        ("--page-size 0", "must be a power of two"),
        ("--page-size -16", "must be a power of two"),
        ("--page-size 1e2", "expected a whole number, got '1e2'"),
        ("--num-pages -1", "must be from 2"),
        ("--max-num-seqs 0", "must be from 1"),
        ("--max-model-len 1", "must be from 2"),
        ("--num-threads 0", "must be from 1"),
        ("--dtype int3", "must be one of auto, float32, bfloat16, float16, got 'int3'"),
        ("--device tpu", "must be one of cpu, cuda, got 'tpu'"),
        ("--kv-memory lots", "expected a size such as 512MiB or 2GB, got 'lots'"),
        ("--kv-memory 2PiB", "expected a size"),
        ("--kv-memory 0", "must be from 4096"),
        ("--kv-memory 1", "must be from 4096"),
        ("--metrics-port 65536", "must be from 0 to 65535, got 65536"),
        ("--log-level loud", "must be one of debug, info, warning, error, got 'loud'"),
        ("--model ./no-such-folder", "there is no file or folder ./no-such-folder"),
        ("--model missing.gguf", "there is no file or folder missing.gguf"),
        ("--model=", "--model (CHATSERVE_MODEL): must not be empty"),
        ("--num-pages 64 --kv-memory 1GiB", "--num-pages and --kv-memory both size the KV pool"),
        ("--max-num-seqs 64 --max-num-batched-tokens 32", "a step could not decode every request"),
    ],
)
def test_bad_engine_setting_is_refused_in_one_line(flags: str, message: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        engine(*flags.split())

    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--port http", "--port (CHATSERVE_PORT): expected a whole number, got 'http'"),
        ("--port 0", "must be from 1 to 65535, got 0"),
        ("--port 70000", "must be from 1 to 65535, got 70000"),
        ("--host=", "--host (CHATSERVE_HOST): must not be empty"),
        ("--disconnect-grace -1", "must be from 0"),
        ("--disconnect-grace nan", "must be from 0"),
        ("--disconnect-grace soon", "expected a number, got 'soon'"),
        ("--max-queue 0", "must be from 1"),
        ("--max-message-size 10", "must be from 1024"),
        ("--allowed-hosts chat.example.org:80", "must be names without port or path"),
        ("--allowed-origins chat.example.org", "must be origins such as https://"),
        ("--allowed-origins https://example.org/path", "must be origins such as https://"),
        ("--redis-url localhost:6379", "must look like redis://HOST:PORT/DB"),
        ("--redis-url http://localhost", "must look like redis://HOST:PORT/DB"),
        ("--redis-url redis://", "must look like redis://HOST:PORT/DB"),
        ("--redis-url redis://host:port", "is not a valid URL"),
        ("--merge-worker-metrics=1", "ignored explicit argument '1'"),
        ("--prot 80", "unrecognized arguments: --prot 80"),
        ("--por 80", "unrecognized arguments: --por 80"),
    ],
)
def test_bad_gateway_setting_is_refused_in_one_line(flags: str, message: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        gateway(*flags.split())

    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_refused_store_address_does_not_show_its_password() -> None:
    with pytest.raises(ConfigError) as refusal:
        gateway("--redis-url", "redes://:secret@localhost")

    assert "secret" not in str(refusal.value)


def test_values_are_checked_however_the_record_is_built() -> None:
    with pytest.raises(ConfigError):
        replace(EngineConfig(), page_size=17)


def test_data_dir_that_is_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()

    with pytest.raises(ConfigError, match="is not a folder"):
        engine("--data-dir", str(file / "below"))


def test_missing_data_dir_is_fine_where_it_can_be_made(tmp_path: Path) -> None:
    config = engine("--data-dir", str(tmp_path / "a" / "b"))

    assert config.data_dir == tmp_path / "a" / "b"
    assert not config.data_dir.exists()


def test_unreadable_data_dir_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)

    with pytest.raises(ConfigError, match="no permission to read and write"):
        engine("--data-dir", str(tmp_path))


def test_tilde_in_a_path_is_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "model").mkdir()

    config = engine("--data-dir", "~/data", "--model", "~/model")

    assert config.data_dir == tmp_path / "data"
    assert config.model == str(tmp_path / "model")


@pytest.mark.parametrize(
    ("host", "names"),
    [
        ("127.0.0.1", ("localhost", "127.0.0.1", "[::1]")),
        ("0.0.0.0", ("localhost", "127.0.0.1", "[::1]")),
        ("192.168.1.5", ("localhost", "127.0.0.1", "[::1]", "192.168.1.5")),
        ("fd00::5", ("localhost", "127.0.0.1", "[::1]", "[fd00::5]")),
    ],
)
def test_gateway_answers_to_loopback_and_its_own_address(host: str, names: tuple[str, ...]) -> None:
    assert GatewayConfig(host=host).host_names == names


def test_gateway_answers_to_further_names_that_are_allowed() -> None:
    config = gateway("--allowed-hosts", "chat.example.org, chat.example.com")

    assert config.host_names[-2:] == ("chat.example.org", "chat.example.com")


def test_serve_merges_worker_metrics_unless_told_not_to() -> None:
    merging = load_config(["serve"], {})
    apart = load_config(["serve"], {"CHATSERVE_MERGE_WORKER_METRICS": "no"})

    assert isinstance(merging, ServeConfig)
    assert merging.gateway.merge_worker_metrics
    assert isinstance(apart, ServeConfig)
    assert not apart.gateway.merge_worker_metrics


def test_serve_uses_its_own_store_unless_one_is_named() -> None:
    alone = load_config(["serve"], {})
    attached = load_config(["serve"], {"CHATSERVE_REDIS_URL": "redis://store:6379/1"})

    assert isinstance(alone, ServeConfig)
    assert alone.uses_bundled_store
    assert isinstance(attached, ServeConfig)
    assert not attached.uses_bundled_store
    assert attached.engine.redis_url == attached.gateway.redis_url == "redis://store:6379/1"
