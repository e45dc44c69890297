"""What operators ask a gateway."""

import asyncio

import pytest
from gateway.gateway_helpers import Service, WorkerSettings, chat, eventually, run_service
from prometheus_client.parser import text_string_to_metric_families

from chatserve import __version__
from chatserve.engine.api import EngineStats
from chatserve.engine.worker import WorkerTimes
from chatserve.engine.worker_metrics import WorkerMetrics
from chatserve.store.connection import Store
from chatserve.store.embedded import EmbeddedServer


def samples(page: str, name: str) -> list[tuple[dict[str, str], float]]:
    return [
        (sample.labels, sample.value)
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == name
    ]


async def test_service_with_a_worker_is_live_and_ready(service: Service) -> None:
    health = await service.http.get("/health")
    ready = await service.http.get("/ready")
    version = await service.http.get("/version")

    assert (health.status_code, ready.status_code) == (200, 200)
    assert version.json() == {"version": __version__}


async def test_service_without_a_worker_is_live_and_not_ready(service: Service) -> None:
    service.stop_worker.set()
    await eventually(lambda: not service.services.models.live)

    health = await service.http.get("/health")
    ready = await service.http.get("/ready")
    reply = await service.http.post("/v1/chat/completions", json=chat("Hi"))

    assert (health.status_code, ready.status_code) == (200, 503)
    assert "worker" in ready.json()["reason"]
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "no_worker")
    assert reply.headers["retry-after"] == "1"


async def test_service_whose_engine_hangs_is_live_and_not_ready(store_url: str) -> None:
    """A readiness that asks for a living process only sends clients to an engine that stands."""
    times = WorkerTimes(listen_ms=200, beat_s=0.1, beat_ttl_ms=2_000, hang_s=0.5)
    async with run_service(store_url, worker=WorkerSettings(times=times)) as service:
        service.model.hold()
        asking = service.spawn(service.http.post("/v1/chat/completions", json=chat("Hi")))
        await service.wait_until_held()
        await eventually(lambda: not service.services.models.live)

        hanging = await service.http.get("/ready")
        health = await service.http.get("/health")
        service.model.release()
        await eventually(lambda: bool(service.services.models.live))
        ready = await service.http.get("/ready")
        await asking

    assert (hanging.status_code, health.status_code) == (503, 200)
    assert ready.status_code == 200


async def test_service_without_its_store_is_live_and_not_ready(tmp_path_factory: object) -> None:
    # Not under `tmp_path`: a test of its own server, which it stops.
    server = EmbeddedServer(tmp_path_factory.mktemp("own-store"))  # type: ignore[attr-defined]
    await server.start()
    async with run_service(server.url) as service:
        service.stop_worker.set()
        await eventually(lambda: not service.services.models.live)
        await server.stop()

        health = await service.http.get("/health")
        ready = await service.http.get("/ready")
        reply = await service.http.post("/v1/chat/completions", json=chat("Hi"))
        async with service.socket() as socket:
            await socket.create("Hi", event_id="e1")
            error = await socket.receive()

    assert (health.status_code, ready.status_code) == (200, 503)
    assert "store" in ready.json()["reason"]
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "store_unavailable")
    assert "sock" not in reply.json()["error"]["message"]
    assert (error["status"], error["error"]["code"]) == (503, "store_unavailable")


async def test_models_are_listed_with_their_context(service: Service) -> None:
    listed = (await service.http.get("/v1/models")).json()
    one = (await service.http.get("/v1/models/echo")).json()

    assert listed == {"object": "list", "data": [one]}
    assert (one["id"], one["object"], one["max_model_len"]) == ("echo", "model", 4096)


async def test_latencies_are_counted_as_readers_see_them(service: Service) -> None:
    service.model.hold()
    async with service.socket() as socket:
        await socket.create("abc")
        for num_characters in (1, 1, 1):
            service.model.allow(1)
            await socket.receive_texts(num_characters)
        service.model.release()
        await socket.receive_answer()
        page = (await service.http.get("/metrics")).text
        connections = await service.metric("chatserve_connections")

    assert samples(page, "chatserve_time_to_first_token_seconds_count") == [({}, 1.0)]
    assert samples(page, "chatserve_inter_token_latency_seconds_count") == [({}, 2.0)]
    assert connections == 1.0


async def test_metrics_of_the_workers_are_added_with_a_label(store_url: str) -> None:
    stats = EngineStats(num_pages=8, pages_free=5, pages_used=2, pages_cached=1, num_steps=3)
    url = WorkerMetrics(lambda: stats).serve("127.0.0.1", 0)
    async with run_service(
        store_url, worker=WorkerSettings(metrics_url=url), merge_worker_metrics=True
    ) as service:
        await service.http.post("/v1/chat/completions", json=chat("Hi"))
        page = (await service.http.get("/metrics")).text

    pages = {labels["state"]: value for labels, value in samples(page, "chatserve_kv_pages")}
    workers = {labels["worker"] for labels, _ in samples(page, "chatserve_kv_pages")}
    ttft = samples(page, "chatserve_time_to_first_token_seconds_count")
    assert pages == {"free": 5.0, "used": 2.0, "cached": 1.0}
    assert workers == {"worker-1"}
    assert sorted(labels.get("worker", "") for labels, _ in ttft) == ["", "worker-1"]
    assert page.count("# TYPE chatserve_time_to_first_token_seconds histogram") == 1


async def test_worker_whose_metrics_do_not_answer_is_left_out(store_url: str) -> None:
    worker = WorkerSettings(metrics_url="http://127.0.0.1:1/metrics")
    async with run_service(store_url, worker=worker, merge_worker_metrics=True) as service:
        reply = await service.http.get("/metrics")

    assert reply.status_code == 200
    assert samples(reply.text, "chatserve_kv_pages") == []


async def test_gateway_on_its_own_exports_only_its_own_metrics(store_url: str) -> None:
    url = WorkerMetrics(EngineStats).serve("127.0.0.1", 0)
    async with run_service(store_url, worker=WorkerSettings(metrics_url=url)) as service:
        page = (await service.http.get("/metrics")).text

    assert samples(page, "chatserve_kv_pages") == []


async def test_those_who_ask_for_readiness_at_once_share_one_look(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe, num_probes = Store.probe, 0

    async def counting(self: Store) -> None:
        nonlocal num_probes
        num_probes += 1
        await asyncio.sleep(0.05)
        await probe(self)

    monkeypatch.setattr(Store, "probe", counting)

    replies = await asyncio.gather(*(service.http.get("/ready") for _ in range(20)))

    assert {reply.status_code for reply in replies} == {200}
    assert num_probes < 20
