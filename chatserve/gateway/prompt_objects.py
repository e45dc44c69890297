"""A registered prompt as the wire has it.

Owns what is told to whom: which worker it is and why one refuses is for operators, since the reason
says how much room there is in a pool that others share.
"""

from chatserve.protocol.conversation_objects import excerpt_of
from chatserve.protocol.prompts import PromptObject, PromptWorkerObject, VariableObject
from chatserve.store.prompt_reports import PromptReport, WorkerReport


def prompt_object(
    report: PromptReport, *, for_operator: bool = False, is_current: bool = True
) -> PromptObject:
    """Return a prompt without its text, and what its workers say of it."""
    prompt = report.prompt
    return PromptObject(
        object="chatserve.prompt",
        tenant=None if prompt.is_preamble else prompt.tenant,
        name=prompt.name,
        version=prompt.version,
        is_current=is_current,
        created_at=prompt.created_at,
        num_bytes=len(prompt.text.encode()),
        excerpt=excerpt_of(prompt.text),
        variables=[
            VariableObject(name=name, default=prompt.defaults.get(name))
            for name in prompt.variables
        ],
        is_pinned=prompt.is_pinned,
        priority=prompt.priority,
        ttl_s=prompt.ttl_s,
        workers=[_worker_object(each, for_operator=for_operator) for each in report.workers],
    )


def _worker_object(worker: WorkerReport, *, for_operator: bool) -> PromptWorkerObject:
    status = worker.status
    told = PromptWorkerObject(
        model=worker.model,
        state=status and status.state.value,
        num_tokens=status.num_tokens if status else 0,
        num_pages=status.num_pages if status else 0,
    )
    if not for_operator:
        return told
    return told.model_copy(
        update={
            "worker_id": worker.worker_id,
            "is_restored": bool(status and status.is_restored),
            "reason": status and status.reason,
        }
    )
