"""The settings of each role, declared once.

Owns the config records and the rules about their values: what a setting is called, what it may
be, which two exclude each other. Standard library only, since every module may import it. The
mechanism behind flags and variables stands in `settings.py`, the kinds of values in
`setting_kinds.py`, the command line in `command_line.py`.

A record is complete and valid once it exists: `__post_init__` raises ConfigError otherwise. What
depends on the machine (how many pages fit, which dtype `auto` means) is computed by its owner and
never written back here.
"""

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chatserve import setting_kinds as kinds
from chatserve.environment import default_data_dir
from chatserve.errors import ConfigError
from chatserve.settings import Setting, check_settings, setting

DEFAULT_MODEL = "smollm2-135m-instruct"
DEFAULT_REDIS_URL = "redis://127.0.0.1:6379/0"

DATA_DIR = {
    "setting": Setting(
        "--data-dir",
        "folder for models, converted weights and the bundled store's data",
        kinds.folder(),
        default_text="`chatserve` in the user's data folder (XDG)",
    )
}

_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
_WILDCARD_HOSTS = ("0.0.0.0", "::")
_MAX_BYTES = 2**50

_LEAST_KV_BYTES = 4096
"""Less holds no page of any model, and is mostly a number whose unit was forgotten."""
_DAY_S = 86400


def _redis_url() -> Any:
    return setting(
        "--redis-url",
        "store to use; `serve` starts a bundled server when none is named",
        kinds.store_url(),
        default=DEFAULT_REDIS_URL,
        default_text=f"{DEFAULT_REDIS_URL}, serve: its own",
    )


def _log_level() -> Any:
    return setting(
        "--log-level",
        "least serious messages to print: debug, info, warning or error",
        kinds.choice("debug", "info", "warning", "error", metavar="LEVEL"),
        default="info",
    )


def _drain() -> Any:
    return setting(
        "--drain",
        "seconds that running answers get to end when a gateway or a worker is told to stop",
        kinds.seconds(0, _DAY_S),
        default=5.0,
    )


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """The settings of one engine worker.

    Used from: the supervisor, the worker's event loop and whoever loads the model for it.
    """

    model: str = setting(
        "--model",
        "model to serve: a name from `chatserve models`, a folder, or a .gguf file",
        kinds.model(),
        default=DEFAULT_MODEL,
    )
    data_dir: Path = field(default_factory=default_data_dir, metadata=DATA_DIR)
    redis_url: str = _redis_url()
    device: str = setting(
        "--device",
        "where to compute: cpu or cuda",
        kinds.choice("cpu", "cuda", metavar="DEVICE"),
        default="cpu",
    )
    dtype: str = setting(
        "--dtype",
        "number format of weights and KV: auto, float32, bfloat16 or float16",
        kinds.choice("auto", "float32", "bfloat16", "float16", metavar="DTYPE"),
        default="auto",
    )
    quantization: str = setting(
        "--quantization",
        "bits of weights: auto (as in the model's file), none (those of --dtype), int8 or int4",
        kinds.choice("auto", "none", "int8", "int4", metavar="BITS"),
        default="auto",
    )
    load_format: str = setting(
        "--load-format",
        "auto, or dummy: random weights in the shape of a config.json, to measure speed",
        kinds.choice("auto", "dummy", metavar="FORMAT"),
        default="auto",
    )
    cpu_level: str = setting(
        "--cpu-level",
        "instructions that the CPU kernels use: auto, avx512, avx2, plain; or torch, without them",
        kinds.choice("auto", "avx512", "avx2", "plain", "torch", metavar="LEVEL"),
        default="auto",
    )
    page_size: int = setting(
        "--page-size", "tokens per KV page, a power of two", kinds.power_of_two(256), default=16
    )
    num_pages: int | None = setting(
        "--num-pages",
        "KV pages in the pool; excludes --kv-memory",
        kinds.number(2, 2**30),
        default=None,
        default_text="what the KV memory holds",
    )
    kv_memory_bytes: int | None = setting(
        "--kv-memory",
        "memory of the KV pool, such as 512MiB or 2GB; excludes --num-pages",
        kinds.size(_LEAST_KV_BYTES, _MAX_BYTES),
        default=None,
        default_text="from the machine's memory",
    )
    max_num_seqs: int | None = setting(
        "--max-num-seqs",
        "requests that may run at once",
        kinds.number(1, 4096),
        default=None,
        default_text="from `chatserve plan`, 8 to 256",
    )
    max_num_batched_tokens: int | None = setting(
        "--max-num-batched-tokens",
        "token budget of one step, decodes and prefill chunks together",
        kinds.number(1, 2**20),
        default=None,
        default_text="from `chatserve plan`, 64 to 8192",
    )
    target_itl_ms: float = setting(
        "--target-itl",
        "time between two tokens of an answer, in ms, that a full batch should keep to",
        kinds.decimal(0.1, 60_000, "MS"),
        default=100.0,
        default_text="100",
    )
    session_tokens: int = setting(
        "--session-tokens",
        "length of a typical session to plan for",
        kinds.number(2, 2**24),
        default=1024,
    )
    shared_tokens: int | None = setting(
        "--shared-tokens",
        "tokens that typical sessions begin with in common",
        kinds.number(0, 2**24),
        default=None,
        default_text="half of --session-tokens",
    )
    bandwidth_gb_per_s: float | None = setting(
        "--bandwidth",
        "speed of reading weights and KV, in GB/s, to plan with",
        kinds.decimal(0.001, 10**6, "RATE"),
        default=None,
        default_text="measured at start",
    )
    throughput_gflops: float | None = setting(
        "--throughput",
        "speed of multiplying, in GFLOP/s, to plan with",
        kinds.decimal(0.001, 10**9, "RATE"),
        default=None,
        default_text="measured at start",
    )
    max_model_len: int | None = setting(
        "--max-model-len",
        "longest prompt plus answer, in tokens",
        kinds.number(2, 2**24),
        default=None,
        default_text="the model's own limit, or three quarters of the pool",
    )
    input_token_weight: int = setting(
        "--input-token-weight",
        "what a prompt token counts when tenants take turns",
        kinds.number(1, 1000),
        default=1,
    )
    output_token_weight: int = setting(
        "--output-token-weight",
        "what a token of an answer counts when tenants take turns",
        kinds.number(1, 1000),
        default=2,
    )
    prefix_cache: bool = setting(
        "--no-prefix-cache",
        "compute every prompt from scratch instead of reusing shared prefixes",
        kinds.switch(value=False),
        default=True,
    )
    cache_scope: str = setting(
        "--cache-scope",
        "who shares the KV of conversations: user, tenant or all",
        kinds.choice("user", "tenant", "all", metavar="SCOPE"),
        default="tenant",
    )
    cache_ttl_s: float | None = setting(
        "--cache-ttl",
        "seconds after which an unused conversation leaves the prefix cache",
        kinds.seconds(1, 365 * _DAY_S),
        default=None,
        default_text="none: when its pages are needed",
    )
    tenant_pinned_pages: int | None = setting(
        "--tenant-pinned-pages",
        "KV pages that the pinned prompts of one tenant may take",
        kinds.number(0, 2**30),
        default=None,
        default_text="a quarter of what all may take",
    )
    saved_prefixes_bytes: int = setting(
        "--saved-prefixes-size",
        "disk space for the KV of pinned prompts; 0 saves none",
        kinds.size(0, _MAX_BYTES),
        default=4 * 2**30,
        default_text="4GiB",
    )
    metrics_host: str = setting(
        "--metrics-host",
        "address of the worker's own /metrics",
        kinds.text("HOST"),
        default="127.0.0.1",
    )
    metrics_port: int = setting(
        "--metrics-port",
        "port of the worker's own /metrics; 0 takes a free one",
        kinds.number(0, 65535, "PORT"),
        default=0,
    )
    num_threads: int | None = setting(
        "--num-threads",
        "CPU threads for the model's arithmetic",
        kinds.number(1, 1024),
        default=None,
        default_text="OMP_NUM_THREADS, or one per core",
    )
    drain_s: float = _drain()
    log_level: str = _log_level()

    def __post_init__(self) -> None:
        check_settings(self)
        if self.num_pages is not None and self.kv_memory_bytes is not None:
            raise ConfigError("--num-pages and --kv-memory both size the KV pool: give one of them")
        self._check_limits()

    def _check_limits(self) -> None:
        seqs, budget = self.max_num_seqs, self.max_num_batched_tokens
        if seqs is not None and budget is not None and budget < seqs:
            raise ConfigError(
                f"--max-num-batched-tokens {budget} is less than --max-num-seqs {seqs}: a step "
                "could not decode every request"
            )
        if self.shared_tokens is not None and self.shared_tokens >= self.session_tokens:
            raise ConfigError(
                f"--shared-tokens {self.shared_tokens} leaves nothing of --session-tokens "
                f"{self.session_tokens}: a session has at least one token of its own"
            )


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    """The settings of one gateway process.

    Used from: the supervisor and the gateway's event loop.
    """

    host: str = setting("--host", "address to listen on", kinds.text("HOST"), default="127.0.0.1")
    port: int = setting("--port", "port to listen on", kinds.number(1, 65535, "PORT"), default=8000)
    redis_url: str = _redis_url()
    disconnect_grace_s: float = setting(
        "--disconnect-grace",
        "seconds that a stored answer outside a session outlives its last reader",
        kinds.seconds(0, _DAY_S),
        default=5.0,
    )
    max_queue: int = setting(
        "--max-queue",
        "requests that may wait for an engine before new ones are refused",
        kinds.number(1, 10**6),
        default=128,
    )
    request_timeout_s: float | None = setting(
        "--request-timeout",
        "seconds that a request may take from queue to end, unless it asks for less",
        kinds.seconds(0.001, _DAY_S),
        default=None,
        default_text="no limit",
    )
    allowed_hosts: tuple[str, ...] = setting(
        "--allowed-hosts",
        "further Host names to answer to, separated by commas",
        kinds.names("NAMES", r"[^\s/:]+|\[[0-9a-fA-F:.]+\]", "names without port or path"),
        default=(),
    )
    allowed_origins: tuple[str, ...] = setting(
        "--allowed-origins",
        "origins of other sites whose pages may connect, separated by commas",
        kinds.names("ORIGINS", r"https?://[^/\s]+", "origins such as https://chat.example.org"),
        default=(),
    )
    merge_worker_metrics: bool = setting(
        "--merge-worker-metrics",
        "add the workers' metrics to /metrics, as `serve` does",
        kinds.switch(value=True),
        default=False,
    )
    max_message_bytes: int = setting(
        "--max-message-size",
        "largest request body or WebSocket message, such as 1MiB",
        kinds.size(1024, 2**30),
        default=2**20,
        default_text="1MiB",
    )
    response_ttl_s: int = setting(
        "--response-ttl",
        "seconds that a stored response can be fetched after its end",
        kinds.number(1, 3650 * _DAY_S, "SECONDS"),
        default=30 * _DAY_S,
        default_text="2592000 (30 days)",
    )
    titles: str = setting(
        "--titles",
        "who names a conversation: model, which is asked in the background, or its first words",
        kinds.choice("model", "words", metavar="WHO"),
        default="model",
    )
    connection_lifetime_s: float = setting(
        "--connection-lifetime",
        "seconds after which a WebSocket is asked to reconnect",
        kinds.seconds(0.1, 30 * _DAY_S),
        default=3600.0,
        default_text="3600",
    )
    drain_s: float = _drain()
    log_level: str = _log_level()

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def host_names(self) -> tuple[str, ...]:
        """Every Host name to answer to, without port: loopback, the bind address, the allowed."""
        own = () if self.host in _WILDCARD_HOSTS else (bracketed(self.host),)
        return tuple(dict.fromkeys((*_LOOPBACK_NAMES, *own, *self.allowed_hosts)))


@dataclass(frozen=True, slots=True)
class ServeConfig:
    """The settings of the supervisor: those of its children, and whose store they use.

    Used from: the supervisor.
    """

    engine: EngineConfig
    gateway: GatewayConfig
    uses_bundled_store: bool


def bracketed(host: str) -> str:
    """Return a host as it stands in a URL: IPv6 addresses in brackets."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
