"""Finds the knee of one gateway process, and the latency that it adds below it.

The offered load rises by a quarter until the gateway does not keep up: it delivers less than 95% of
it, or one event in a hundred is late by more than 200 ms. The most that it delivered before is the
knee. Then the latencies at half and at four fifths of it, at the two loads that are aimed for, and
the memory of idle sockets. Last, the client alone against a server that does next to nothing, to
show that it was not the limit. Every row says how much of one processor each process took.

    python -m benchmarks.gateway [--quick]
"""

import argparse
import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from benchmarks.gateway.client import Figures, Load, raise_open_files
from benchmarks.gateway.processes import Running, free_port, output_of, running, running_gateway
from benchmarks.record import write_record

STREAMS = 250
FIRST_EVENTS_PER_S = 1000
GROWTH = 1.25
MIN_DELIVERED = 0.95
MAX_P99_MS = 200.0
TARGETS = (Load(250, 20, 10), Load(1000, 5, 10))

_ECHO_START_S = 1.0
_SETTLE_S = 3.0
"""Between two loads, for the streams of the first to end."""


@dataclass(frozen=True, slots=True)
class Row:
    """One load and what came of it. `cpu` is the share of one processor by process."""

    name: str
    streams: int
    offered_per_s: float
    delivered_per_s: float
    p50_ms: float
    p99_ms: float
    cpu: dict[str, float]

    @property
    def keeps_up(self) -> bool:
        is_delivered = self.delivered_per_s >= MIN_DELIVERED * self.offered_per_s
        return is_delivered and self.p99_ms <= MAX_P99_MS


async def apply(name: str, load: Load, gateway: Running) -> Row:
    """Put a load on the gateway, and return what came of it."""
    await asyncio.sleep(_SETTLE_S)
    figures = await _client(gateway.port, load)
    return _row(name, load, figures, gateway.shares(figures.started, figures.ended))


async def find_knee(gateway: Running, seconds: float) -> list[Row]:
    """Return the rows of a rising load; all but the last kept up."""
    offered, rows = float(FIRST_EVENTS_PER_S), list[Row]()
    while not rows or rows[-1].keeps_up:
        rows.append(await apply("ramp", Load(STREAMS, offered / STREAMS, seconds), gateway))
        print_rows(rows[-1:])
        offered *= GROWTH
    return rows


async def idle_socket_bytes(num_sockets: int) -> float:
    """Return the memory that a gateway, which has done nothing yet, takes for one idle socket."""
    async with running_gateway() as gateway:
        await _client(gateway.port, Load(1, 10, 1))  # whatever is loaded with the first use
        before = gateway.gateway_rss_bytes()
        load = Load(num_sockets, 0, 3)
        measuring = asyncio.create_task(_client(gateway.port, load))
        highest = before
        while not measuring.done():
            highest = max(highest, gateway.gateway_rss_bytes())
            await asyncio.sleep(0.1)
        await measuring
    return (highest - before) / num_sockets


async def client_alone(load: Load) -> Row:
    """Return what the client does with a load that costs its server next to nothing."""
    port = free_port()
    async with running("-m", "benchmarks.gateway.echo", str(port)):
        await asyncio.sleep(_ECHO_START_S)
        return _row("client alone", load, await _client(port, load), {})


async def _client(port: int, load: Load) -> Figures:
    output = await output_of("-m", "benchmarks.gateway.client", str(port), json.dumps(asdict(load)))
    return Figures(**json.loads(output))


def _row(name: str, load: Load, figures: Figures, cpu: dict[str, float]) -> Row:
    return Row(
        name,
        load.streams,
        load.streams * load.rate,
        figures.events_per_s,
        figures.latency_ms(0.5),
        figures.latency_ms(0.99),
        {**cpu, "client": figures.cpu_share},
    )


def print_rows(rows: Sequence[Row]) -> None:
    for row in rows:
        cpu = ", ".join(f"{name} {share:.0%}" for name, share in row.cpu.items())
        print(
            f"{row.name:14} {row.streams:5} streams, {row.offered_per_s:7,.0f} events/s offered, "
            f"{row.delivered_per_s:7,.0f} delivered, p50 {row.p50_ms:6.1f} ms, "
            f"p99 {row.p99_ms:6.1f} ms   ({cpu})",
            flush=True,
        )


async def measure(seconds: float, idle_sockets: int) -> dict[str, object]:
    async with running_gateway() as gateway:
        ramp = await find_knee(gateway, seconds)
        knee = max((row.delivered_per_s for row in ramp if row.keeps_up), default=0.0)
        loads = [
            *((f"{share:.0%} of knee", Load(STREAMS, share * knee / STREAMS, seconds))
              for share in (0.5, 0.8) if knee),
            *(("target", Load(target.streams, target.rate, seconds)) for target in TARGETS),
        ]  # fmt: skip
        below = [await apply(name, load, gateway) for name, load in loads]
        print_rows(below)
    alone = await client_alone(Load(STREAMS, max(knee, 5000) / STREAMS, seconds))
    print_rows([alone])
    socket_bytes = await idle_socket_bytes(idle_sockets)
    print(f"knee: {knee:,.0f} events/s; idle socket: {socket_bytes / 1000:.1f} kB")
    rows = [*ramp, *below, alone]
    return {
        "knee_events_per_s": knee,
        "idle_sockets": idle_sockets,
        "idle_socket_bytes": socket_bytes,
        "rows": [asdict(row) for row in rows],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="short loads and fewer idle sockets")
    args = parser.parse_args()
    raise_open_files()
    figures = asyncio.run(measure(*((2.0, 500) if args.quick else (10.0, 5000))))
    print("raw figures:", write_record("gateway", figures))


if __name__ == "__main__":
    main()
