"""The compose file starts our roles with commands that the roles understand."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from chatserve.command_line import ModelsConfig, load_config
from chatserve.config import EngineConfig, GatewayConfig

COMPOSE_FILE = Path(__file__).parents[2] / "docker-compose.yml"


def service(name: str) -> dict[str, Any]:
    return dict(yaml.safe_load(COMPOSE_FILE.read_text())["services"][name])


@pytest.mark.parametrize(
    ("name", "config_type"),
    [("model", ModelsConfig), ("engine", EngineConfig), ("gateway", GatewayConfig)],
)
def test_command_of_a_service_is_one_of_ours(name: str, config_type: type) -> None:
    described = service(name)

    config = load_config(described["command"].split(), described["environment"])

    assert isinstance(config, config_type)


def test_gateway_and_engine_use_the_composed_store() -> None:
    urls = [service(name)["environment"]["CHATSERVE_REDIS_URL"] for name in ("engine", "gateway")]

    assert urls == ["redis://redis:6379/0"] * 2
    assert "noeviction" in service("redis")["command"]
