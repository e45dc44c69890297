"""From the command line and the environment to the config of one command.

Owns the list of commands and which settings each takes. Knows no values: those are parsed and
checked by the settings themselves.
"""

from argparse import ArgumentParser
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from chatserve import __version__
from chatserve import setting_kinds as kinds
from chatserve.admin import key_config, prompt_config, tenant_config
from chatserve.admin.action_flags import ALWAYS
from chatserve.admin.key_config import KeyConfig
from chatserve.admin.prompt_config import PromptConfig
from chatserve.admin.tenant_config import TenantConfig
from chatserve.admin.usage_config import UsageConfig
from chatserve.config import DATA_DIR, DEFAULT_MODEL, EngineConfig, GatewayConfig, ServeConfig
from chatserve.environment import default_data_dir
from chatserve.errors import ConfigError
from chatserve.settings import add_arguments, check_settings, find_values, setting


@dataclass(frozen=True, slots=True)
class ModelsConfig:
    """What `chatserve models` was asked to do.

    Used from: the command line.
    """

    action: str = setting(
        "action",
        "list what can be served, or fetch one ahead of time",
        kinds.choice("list", "fetch", metavar="ACTION"),
        default="list",
    )
    model: str = setting("name", "model to fetch", kinds.model(), default=DEFAULT_MODEL)
    data_dir: Path = field(default_factory=default_data_dir, metadata=DATA_DIR)

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True, slots=True)
class PlanConfig:
    """The engine that `chatserve plan` is to plan for, and how the plan is to be printed.

    Used from: the command line.
    """

    engine: EngineConfig
    as_json: bool = setting(
        "--json",
        "print the plan as JSON",
        kinds.switch(value=True),
        default=False,
        is_variable=False,
    )


PLAN_SETTINGS = (
    "model",
    "data_dir",
    "device",
    "dtype",
    "quantization",
    "cpu_level",
    "page_size",
    "num_pages",
    "kv_memory_bytes",
    "max_num_seqs",
    "max_num_batched_tokens",
    "target_itl_ms",
    "session_tokens",
    "shared_tokens",
    "bandwidth_gb_per_s",
    "throughput_gflops",
    "max_model_len",
    "prefix_cache",
    "num_threads",
    "as_json",
)
"""The fields that a plan depends on; flags without a say in it are not accepted."""


@dataclass(frozen=True, slots=True)
class VersionConfig:
    """`chatserve version` has no settings."""


Config = (
    ServeConfig
    | GatewayConfig
    | EngineConfig
    | PlanConfig
    | ModelsConfig
    | TenantConfig
    | KeyConfig
    | PromptConfig
    | UsageConfig
    | VersionConfig
)

_COMMANDS: dict[str, tuple[str, tuple[type, ...]]] = {
    "serve": ("start store, engine and gateway on this machine", (EngineConfig, GatewayConfig)),
    "gateway": ("start one gateway on a store", (GatewayConfig,)),
    "engine": ("start one engine worker on a store", (EngineConfig,)),
    "plan": ("say what an engine can serve here, and why", (EngineConfig, PlanConfig)),
    "models": ("list the models, or fetch one", (ModelsConfig,)),
    "tenant": ("list, add, show, set or remove tenants", (TenantConfig,)),
    "key": ("list, add, show, set, rotate or revoke keys", (KeyConfig,)),
    "prompt": ("list, add, show, change or remove system prompts", (PromptConfig,)),
    "usage": ("show what tenants and users have used", (UsageConfig,)),
    "version": ("print the version", (VersionConfig,)),
}

_ACTIONS = {
    "tenant": tenant_config.ACTIONS,
    "key": key_config.ACTIONS,
    "prompt": prompt_config.ACTIONS,
}
_HELP = ("-h", "--help")


def load_config(argv: Sequence[str], environ: Mapping[str, str]) -> Config:
    """Build the config of the command that `argv` names.

    Raises:
        ConfigError: In one line, what is wrong and what would be right.
    """
    arguments = vars(_parser(_settings_in_help(argv)).parse_args(argv))
    match arguments.pop("command"):
        case "serve":
            return _serve_config(arguments, environ)
        case "gateway":
            return GatewayConfig(**find_values(GatewayConfig, arguments, environ))
        case "engine":
            return EngineConfig(**find_values(EngineConfig, arguments, environ))
        case "plan":
            return _plan_config(arguments, environ)
        case "models":
            return ModelsConfig(**find_values(ModelsConfig, arguments, environ))
        case "tenant":
            return TenantConfig(**find_values(TenantConfig, arguments, environ))
        case "key":
            return KeyConfig(**find_values(KeyConfig, arguments, environ))
        case "prompt":
            return PromptConfig(**find_values(PromptConfig, arguments, environ))
        case "usage":
            return UsageConfig(**find_values(UsageConfig, arguments, environ))
        case _:
            return VersionConfig()


def _serve_config(arguments: Mapping[str, str], environ: Mapping[str, str]) -> ServeConfig:
    engine = find_values(EngineConfig, arguments, environ)
    gateway = find_values(GatewayConfig, arguments, environ)
    gateway.setdefault("merge_worker_metrics", True)
    return ServeConfig(
        engine=EngineConfig(**engine),
        gateway=GatewayConfig(**gateway),
        uses_bundled_store="redis_url" not in engine,
    )


def _plan_config(arguments: Mapping[str, str], environ: Mapping[str, str]) -> PlanConfig:
    return PlanConfig(
        engine=EngineConfig(**find_values(EngineConfig, arguments, environ)),
        **find_values(PlanConfig, arguments, environ),
    )


class _Parser(ArgumentParser):
    """An ArgumentParser whose complaints are ConfigErrors, so that each is one line."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message} (see {self.prog} --help)")


def _settings_in_help(argv: Sequence[str]) -> dict[str, Collection[str]]:
    """Return the fields that a command shows, by its name; all of those that are not there.

    Help for one action shows what that action takes. Otherwise all are known to the parser, so
    that the complaint about a flag can say which action it is not for.
    """
    shown: dict[str, Collection[str]] = {"plan": PLAN_SETTINGS}
    command, action = (*argv, "", "")[:2]
    taken = _ACTIONS.get(command, {}).get(action)
    if taken is not None and any(word in _HELP for word in argv):
        shown[command] = ALWAYS | taken
    return shown


def _parser(shown: Mapping[str, Collection[str]]) -> ArgumentParser:
    parser = _Parser(prog="chatserve", description="Streaming chat over one language model.")
    parser.add_argument("--version", action="version", version=f"chatserve {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (summary, config_types) in _COMMANDS.items():
        command = commands.add_parser(
            name,
            help=summary,
            description=f"{summary.capitalize()}. A flag beats its variable.",
            allow_abbrev=False,
        )
        add_arguments(command, *config_types, only=shown.get(name))
    return parser
