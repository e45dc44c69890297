"""The whole engine in one record, for people to look at.

Owns what goes on beside the steps for that: the last minute's counts and the names of nodes.
Everything else is read from scheduler and cache when somebody asks, between two steps.
"""

from chatserve.cache.page_map import page_map
from chatserve.cache.scope_map import CacheScope
from chatserve.cache.tree_state import NodeNames, TreeState, tree_state
from chatserve.cache_snapshot import CacheSnapshot, RunningRequest
from chatserve.engine.request import Request
from chatserve.engine.scheduler import Scheduler, SchedulerOutput
from chatserve.engine.step_history import StepHistory


class Observation:
    """What is to be seen of one engine.

    Owns: the history of its steps, and the names of nodes. Used from: the engine thread.

    Args:
        unix_offset_s: What makes the engine's time one in seconds since 1970.
        names: How nodes are named.
    """

    def __init__(self, scheduler: Scheduler, unix_offset_s: float, names: NodeNames | None = None):
        self._scheduler = scheduler
        self._unix_offset_s = unix_offset_s
        self._by_user = scheduler.scope_map.cache_scope is CacheScope.USER
        self._history = StepHistory(by_user=self._by_user)
        self._names = names or NodeNames()

    def record_step(self, output: SchedulerOutput, now_s: float) -> None:
        """Count a step that has been computed."""
        self._history.record(output, self._scheduler.waiting, now_s + self._unix_offset_s)

    def snapshot(self, now_s: float) -> CacheSnapshot:
        """Return the state between two steps."""
        cache, running = self._scheduler.cache, self._scheduler.running
        tree = tree_state(cache.tree, cache.pins, self._names, now_s)
        holders = [request.held for request in running if request.held is not None]
        return CacheSnapshot(
            taken_at=now_s + self._unix_offset_s,
            page_size=cache.page_size,
            by_user=self._by_user,
            pages=page_map(cache, holders),
            nodes=tree.nodes,
            hidden=tree.hidden,
            requests=[_describe(request, tree) for request in running],
            intervals=self._history.intervals(now_s + self._unix_offset_s),
        )


def _describe(request: Request, tree: TreeState) -> RunningRequest:
    held = request.held
    assert held is not None, f"{request.request_id} runs without pages"
    return RunningRequest(
        request_id=request.request_id,
        tenant=request.tenant,
        user=request.user,
        node_id=tree.id_above(held.node),
        is_prefilling=request.is_prefilling,
        num_prompt_tokens=request.num_prompt_tokens,
        num_cached_tokens=request.num_cached_tokens or 0,
        num_computed_tokens=request.num_computed_tokens,
        num_output_tokens=request.num_output_tokens,
        pages=list(held.page_ids),
        copied_page=held.copied,
    )
