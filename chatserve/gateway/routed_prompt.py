"""A prompt as its route depends on it.

Owns which of its prefixes have names, and which of them decides where it is at home. Knows no
worker.
"""

from collections.abc import Sequence

from chatserve.prefix_digest import PageHashes, tenant_salt

_HOME_PAGES = 4
_MAX_PAGES = 1024


class RoutedPrompt:
    """The tokens of a prompt, named page by page under the salt of its tenant.

    Owns: the names of its prefixes. Used from: the event loop.
    """

    def __init__(self, token_ids: Sequence[int], tenant: str):
        self.num_tokens = len(token_ids)
        self.salt = tenant_salt(tenant)
        self._token_ids = token_ids
        self._hashes: dict[int, PageHashes] = {}

    def hashes(self, page_size: int) -> PageHashes:
        """Return the names of what can be found in a cache: the last token never is."""
        if page_size not in self._hashes:
            end = min(self.num_tokens - 1, _MAX_PAGES * page_size)
            self._hashes[page_size] = PageHashes(self._token_ids[:end], page_size)
        return self._hashes[page_size]

    def home(self, page_size: int) -> int:
        """Return what the rendezvous is about."""
        hashes = self.hashes(page_size)
        return self.salt ^ hashes[min(_HOME_PAGES, hashes.num_pages) - 1]
