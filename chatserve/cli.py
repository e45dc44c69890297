"""The `chatserve` command: what serves, what plans, and what an operator does.

Owns the exit codes, and the one line that a wrong setting or a broken model ends with. Knows what
each command starts, and nothing of how it works.

Imports are inside the functions on purpose. Each role is its own process and loads only what it
needs: the gateway never loads torch, the engine never loads Starlette, and `--help` loads neither
and answers at once. This is the only place where all roles meet.
"""

import asyncio
import io
import signal
import sys
from collections.abc import Sequence
from typing import assert_never

from chatserve import __version__
from chatserve.admin.key_config import KeyConfig
from chatserve.admin.output import (
    Console,
    ReaderGone,
    standard_output,
    terminal,
    write_failure,
    write_text,
)
from chatserve.admin.prompt_config import PromptConfig
from chatserve.admin.tenant_config import TenantConfig
from chatserve.admin.usage_config import UsageConfig
from chatserve.command_line import Config, ModelsConfig, PlanConfig, VersionConfig, load_config
from chatserve.config import EngineConfig, GatewayConfig, ServeConfig
from chatserve.environment import process_environ, wait_passively
from chatserve.errors import ChatServeError, ConfigError, ModelError
from chatserve.log import configure_logging
from chatserve.supervisor.supervisor import EXIT_BAD_SETTING, EXIT_INTERRUPTED

EXIT_FAILURE = 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code of the process."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _run(_read_command_line(sys.argv[1:] if argv is None else argv))
    except (ConfigError, ModelError) as error:
        return _complain(error, EXIT_BAD_SETTING)
    except ReaderGone:
        return EXIT_FAILURE
    except ChatServeError as error:
        return _complain(error, EXIT_FAILURE)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _read_command_line(argv: Sequence[str]) -> Config:
    try:
        return load_config(argv, process_environ())
    except SystemExit:  # help was asked for, and may be in the buffer still
        if sys.stdout is not None:
            write_text(sys.stdout, "")
        raise
    except OSError as error:  # older versions of argparse let it through when they print help
        raise write_failure(sys.stdout, error) from error


def _complain(error: ChatServeError, code: int) -> int:
    print(f"chatserve: {error}", file=sys.stderr)
    return code


def _run(config: Config) -> int:
    match config:
        case ServeConfig():
            return _serve(config)
        case GatewayConfig():
            return _gateway(config)
        case EngineConfig():
            return _engine(config)
        case PlanConfig():
            return _plan(config)
        case ModelsConfig():
            return _models(config)
        case TenantConfig() | KeyConfig() | PromptConfig() | UsageConfig():
            return _administer(config)
        case VersionConfig():
            write_text(standard_output(), f"chatserve {__version__}\n")
            return 0
        case _:
            assert_never(config)


def _serve(config: ServeConfig) -> int:
    from chatserve.supervisor.serve import serve

    configure_logging(config.gateway.log_level, "serve")
    return serve(config, say=lambda line: print(line, flush=True))


def _gateway(config: GatewayConfig) -> int:
    from chatserve.gateway.server import run_gateway

    configure_logging(config.log_level, "gateway")
    asyncio.run(run_gateway(config))
    return 0


def _engine(config: EngineConfig) -> int:
    wait_passively()
    from chatserve.engine.launch import run_worker

    configure_logging(config.log_level, "engine")
    asyncio.run(run_worker(config))
    return 0


def _plan(config: PlanConfig) -> int:
    wait_passively()
    from chatserve.planning.report import as_json, as_table
    from chatserve.planning.sources import plan_without_loading

    plan = plan_without_loading(config.engine)
    text = as_json(plan) if config.as_json else as_table(plan)
    write_text(standard_output(), f"{text}\n")
    return 0


def _models(config: ModelsConfig) -> int:
    from chatserve.model.catalog import CATALOG
    from chatserve.model_fetch import fetch_if_missing

    if config.action == "fetch":
        if config.model not in CATALOG:
            known = ", ".join(CATALOG)
            raise ConfigError(f"models fetch: {config.model!r} is none of what there is: {known}")
        path = fetch_if_missing(config.model, config.data_dir, sys.stderr)
        write_text(standard_output(), f"{config.model} is in {path}\n")
        return 0
    for entry in CATALOG.values():
        state = "fetched" if entry.path_in(config.data_dir).exists() else "not fetched"
        title = f"{entry.alias}  {state}  {entry.license}"
        write_text(standard_output(), f"{title}\n    {entry.description}\n")
    return 0


def _administer(config: TenantConfig | KeyConfig | PromptConfig | UsageConfig) -> int:
    match config:
        case TenantConfig():
            return _tenant(config)
        case KeyConfig():
            return _key(config)
        case PromptConfig():
            return _prompt(config)
        case UsageConfig():
            return _usage(config)
        case _:
            assert_never(config)


def _tenant(config: TenantConfig) -> int:
    from chatserve.admin.tenant_command import run_tenant_command

    return asyncio.run(run_tenant_command(config, _console()))


def _key(config: KeyConfig) -> int:
    from chatserve.admin.key_command import run_key_command

    return asyncio.run(run_key_command(config, standard_output()))


def _prompt(config: PromptConfig) -> int:
    from chatserve.admin.prompt_command import run_prompt_command

    return asyncio.run(run_prompt_command(config, _console()))


def _usage(config: UsageConfig) -> int:
    from chatserve.admin.usage_command import run_usage_command

    return asyncio.run(run_usage_command(config, standard_output()))


def _console() -> Console:
    return Console(standard_output(), sys.stderr or io.StringIO(), terminal())
