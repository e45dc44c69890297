"""Pinned prefixes between the KV pool and the disk.

Owns the way from pages to files and back. Knows neither what is to be pinned nor what a file looks
like (`prefix_files.py`).
"""

from collections.abc import Collection, Sequence

from chatserve.cache.page_allocator import PageId
from chatserve.engine.page_contents import PageContents, PoolLayout
from chatserve.engine.prefix_files import PrefixFiles
from chatserve.engine.prefix_format import PrefixKey
from chatserve.engine.runner import PageAccess


class SavedPrefixes:
    """Saves the pages of prefixes and puts them back.

    Owns: nothing but its parts. Used from: the engine thread, between two steps.
    """

    def __init__(self, files: PrefixFiles, pages: PageAccess, layout: PoolLayout):
        self._files = files
        self._pages = pages
        self._layout = layout

    def save(self, key: PrefixKey, page_ids: Sequence[PageId]) -> None:
        """Save the pages of a prefix, if the disk will have them."""
        self._files.save(key, self._pages.read_pages(page_ids))

    def load(self, key: PrefixKey) -> PageContents | None:
        """Return what was saved of exactly this prefix, or None."""
        return self._files.load(key)

    def restore(self, contents: PageContents, page_ids: Sequence[PageId], first: int) -> None:
        """Write the pages of a prefix behind its first `first`, which are there already."""
        if page_ids:
            self._pages.write_pages(page_ids, contents.pages_from(first, self._layout))

    def keep_only(self, names: Collection[tuple[str, str]]) -> None:
        """Remove the files of all but these prefixes, each a tenant and a name."""
        self._files.prune(names)

    def forget(self, tenant: str, name: str) -> None:
        """Remove the file of a prefix."""
        self._files.remove(tenant, name)

    def forget_tenant(self, tenant: str) -> None:
        """Remove every file of a tenant."""
        self._files.remove_tenant(tenant)
