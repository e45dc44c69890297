"""What the engine asks of whatever computes its steps and holds its pages.

Owns the contract between integers and tensors. `ModelRunner` fulfils it on a model, `FakeRunner` on
integers that stand in for KV, so that everything above is run and tested without torch.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from chatserve.cache.page_allocator import PageId
from chatserve.engine.api import RequestId
from chatserve.engine.page_contents import PageContents
from chatserve.engine.scheduler import SchedulerOutput


class Runner(Protocol):
    """Whatever can compute a step."""

    def execute(self, output: SchedulerOutput) -> Mapping[RequestId, int | None]:
        """Run copies and forward pass; return a token for each run that samples.

        None in place of a token says that its logits were not finite.
        """


class PageAccess(Protocol):
    """Whatever gives and takes the contents of pages, between two steps."""

    def read_pages(self, page_ids: Sequence[PageId]) -> PageContents:
        """Return a copy of pages, in the order given."""

    def write_pages(self, page_ids: Sequence[PageId], contents: PageContents) -> None:
        """Put what `read_pages` returned into other pages."""
