"""Real processes under the real supervisor: nobody is left behind, however it ends."""

import os
import signal
import sys
from pathlib import Path

import pytest
from e2e.lifecycle_helpers import is_running, wait_until_gone, watched

STANDINS = str(Path(__file__).with_name("standins.py"))
SLEEPER = "exec sleep 600"
STUBBORN = "trap '' TERM; echo stubborn is up; while :; do sleep 1; done"
PARENT = "sleep 600 & echo $! >{pid_file}; echo parent is up; wait"


def standins(folder: Path, **commands: str) -> list[str]:
    named = [f"{name}={command}" for name, command in commands.items()]
    return [sys.executable, STANDINS, str(folder), *named]


def telling(name: str, journal: Path) -> str:
    """Return a command that notes in a file that it was asked to end."""
    wait = "while :; do sleep 0.05; done"
    return f"trap 'echo {name} >>{journal}; exit' TERM; echo {name} is up; {wait}"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_one_signal_stops_gateway_engine_and_store_in_this_order(
    number: signal.Signals, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    commands = {name: telling(name, journal) for name in ("engine", "gateway")}

    async with watched(standins(tmp_path, **commands)) as supervisor:
        await supervisor.wait_for("ready")
        await supervisor.wait_for("engine is up")
        await supervisor.wait_for("gateway is up")
        supervisor.signal(number)
        code = await supervisor.wait_for_end()

    assert code == 0
    assert journal.read_text().split() == ["gateway", "engine"]
    assert set(supervisor.pids) == {"store", "engine", "gateway", "guardian"}
    assert not any(map(is_running, supervisor.pids.values()))


async def test_second_signal_kills_a_child_that_does_not_stop(tmp_path: Path) -> None:
    async with watched(standins(tmp_path, engine=STUBBORN)) as supervisor:
        await supervisor.wait_for("ready")
        await supervisor.wait_for("stubborn is up")
        supervisor.signal(signal.SIGINT)
        await supervisor.wait_for("stopping")
        supervisor.signal(signal.SIGINT)
        code = await supervisor.wait_for_end()

    assert code == 130
    assert not any(map(is_running, supervisor.pids.values()))


async def test_children_of_a_killed_supervisor_end_with_it(tmp_path: Path) -> None:
    grandchild = tmp_path / "grandchild"
    commands = {"engine": PARENT.format(pid_file=grandchild), "gateway": STUBBORN}

    async with watched(standins(tmp_path, **commands)) as supervisor:
        await supervisor.wait_for("ready")
        await supervisor.wait_for("parent is up")
        await supervisor.wait_for("stubborn is up")
        supervisor.signal(signal.SIGKILL)
        await supervisor.wait_for_end()
        pids = [*supervisor.pids.values(), int(grandchild.read_text())]
        await wait_until_gone(pids)

    assert set(supervisor.pids) == {"store", "engine", "gateway", "guardian"}


async def test_child_of_a_supervisor_killed_while_it_starts_ends_too(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    engine = f"echo $$ >{marker}; kill -KILL $PPID; exec sleep 600"

    async with watched(standins(tmp_path, engine=engine)) as supervisor:
        await supervisor.wait_for_end()
        await wait_until_gone([int(marker.read_text())])

    assert supervisor.process.returncode == -signal.SIGKILL


async def test_interrupt_of_the_terminal_reaches_the_supervisor_alone(tmp_path: Path) -> None:
    """A terminal signals the whole foreground group; children used to see it and die unasked."""
    journal = tmp_path / "journal"
    engine = f"trap 'echo interrupted >>{journal}' INT; {telling('engine', journal)}"

    async with watched(standins(tmp_path, engine=engine)) as supervisor:
        await supervisor.wait_for("ready")
        await supervisor.wait_for("engine is up")
        os.killpg(supervisor.process.pid, signal.SIGINT)
        code = await supervisor.wait_for_end()

    assert code == 0
    assert journal.read_text().split() == ["engine"]


async def test_killed_child_is_started_again(tmp_path: Path) -> None:
    async with watched(standins(tmp_path, engine=SLEEPER)) as supervisor:
        await supervisor.wait_for("ready")
        first_pid = supervisor.pids["engine"]
        os.kill(first_pid, signal.SIGKILL)
        await supervisor.wait_for("started the engine", times=2)
        second_pid = supervisor.pids["engine"]

        assert second_pid != first_pid
        assert is_running(second_pid)
    assert "engine ended (signal SIGKILL); starting it again" in supervisor.output


async def test_killed_store_comes_back_at_the_same_address(tmp_path: Path) -> None:
    async with watched(standins(tmp_path)) as supervisor:
        await supervisor.wait_for("ready")
        os.kill(supervisor.pids["store"], signal.SIGKILL)
        await supervisor.wait_for("started the store", times=2)

        assert is_running(supervisor.pids["store"])


async def test_child_that_keeps_dying_ends_the_service_with_one_line(tmp_path: Path) -> None:
    async with watched(standins(tmp_path, engine="exit 3", gateway=SLEEPER)) as supervisor:
        code = await supervisor.wait_for_end()

    assert code == 1
    assert "the engine died 4 times in a row, the last time with exit code 3" in supervisor.output
    assert "Traceback" not in supervisor.output
    assert not any(map(is_running, supervisor.pids.values()))


async def test_what_a_dead_child_leaves_behind_is_ended_before_the_next_start(
    tmp_path: Path,
) -> None:
    grandchild = tmp_path / "grandchild"
    engine = f"test -e {grandchild} && exec sleep 600; sleep 600 & echo $! >{grandchild}; exit 1"

    async with watched(standins(tmp_path, engine=engine)) as supervisor:
        await supervisor.wait_for("started the engine", times=2)

        assert not is_running(int(grandchild.read_text()))


async def test_second_service_on_one_data_folder_is_refused_in_one_line(tmp_path: Path) -> None:
    async with watched(standins(tmp_path, engine=SLEEPER)) as first:
        await first.wait_for("ready")
        async with watched(standins(tmp_path, engine=SLEEPER)) as second:
            code = await second.wait_for_end()

        assert code == 1
        assert f"{tmp_path} is in use by process {first.process.pid}" in second.output
        assert second.output.count("\n") == 1


async def test_service_starts_right_after_an_earlier_one_was_killed(tmp_path: Path) -> None:
    async with watched(standins(tmp_path, engine=SLEEPER)) as first:
        await first.wait_for("ready")
        first.signal(signal.SIGKILL)
        async with watched(standins(tmp_path, engine=SLEEPER)) as second:
            await second.wait_for("ready")

            assert not any(map(is_running, first.pids.values()))
