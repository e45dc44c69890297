"""The bytes of a file that holds one prefix's KV.

Owns the format. Knows an open file and nothing of folders, names or modes. From front to back:

    format "chatserve-prefix-1"      one line for each thing in which file and reader must agree:
    weights "3f9c0a..."              the pool's layout, the scope, the name,
    ...                              and the exact tokens
    token_ids [1, 9690, 198]
    keys of layer 0, 1, ...          [num_layers, num_tokens, token_bytes]
    values of layer 0, 1, ...        likewise
    digest                           SHA-256 of everything above

The one idea: a reader knows what it wants, so it parses nothing. It builds the only header that
would fit and compares bytes; that header fixes the length of the rest. No number that stands in a
file is ever believed.

Slots behind the last token are not in the file, since they may still hold what another tenant
computed there before. A reader gets zeros in their place.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from io import BufferedIOBase
from itertools import zip_longest

from chatserve.engine.page_contents import PageContents, PoolLayout
from chatserve.errors import ChatServeError

# Raise it whenever the file, or what the model writes into a slot, changes its meaning.
_FORMAT = "chatserve-prefix-1"

_DIGEST_BYTES = hashlib.sha256().digest_size


class UnusableFile(ChatServeError):
    """A file that was saved for something else, or is damaged; the message says which."""


@dataclass(frozen=True, slots=True)
class PrefixKey:
    """Whose prefix it is, its name, and its exact tokens. The tenant "" is the public scope."""

    tenant: str
    name: str
    token_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PrefixFormat:
    """Writes and reads the file of one prefix for pools of one layout."""

    layout: PoolLayout
    key: PrefixKey

    @property
    def num_bytes(self) -> int:
        """The length of the file."""
        return len(self._header()) + 2 * self.layout.num_layers * self._used_bytes + _DIGEST_BYTES

    def write(self, file: BufferedIOBase, contents: PageContents) -> None:
        """Write the prefix's tokens, out of `contents`, all its pages."""
        received = (contents.k.nbytes, contents.v.nbytes)
        assert received == (self._contents_bytes,) * 2, (
            f"{len(self.key.token_ids)} tokens have {self._contents_bytes} bytes of keys and as "
            f"many of values, received {received}"
        )
        header = self._header()
        file.write(header)
        digest = hashlib.sha256(header)
        for rows in self._token_rows(contents):
            file.write(rows)
            digest.update(rows)
        file.write(digest.digest())

    def read(self, file: BufferedIOBase, file_bytes: int) -> PageContents:
        """Return what a file of `file_bytes` bytes holds, read into place: nothing is held twice.

        Raises:
            UnusableFile: Header, length or digest are not what they must be.
        """
        expected = self._header()
        header = file.read(len(expected))
        if header != expected:
            raise UnusableFile(f"it differs in {_first_difference(expected, header)}")
        if file_bytes != self.num_bytes:
            raise UnusableFile(f"it has {file_bytes:,} bytes, expected {self.num_bytes:,}")
        contents = PageContents.zeros(self._contents_bytes)
        digest = hashlib.sha256(header)
        for rows in self._token_rows(contents):
            file.readinto(rows)
            digest.update(rows)
        if file.read(_DIGEST_BYTES) != digest.digest():
            raise UnusableFile("its digest is wrong: it is damaged")
        return contents

    @property
    def _used_bytes(self) -> int:
        """Bytes of a layer's keys that belong to tokens."""
        return len(self.key.token_ids) * self.layout.token_bytes

    @property
    def _contents_bytes(self) -> int:
        return self.layout.num_layers * self.layout.layer_bytes(len(self.key.token_ids))

    def _header(self) -> bytes:
        fields = {"format": _FORMAT, **asdict(self.layout), **asdict(self.key)}
        return "".join(f"{name} {json.dumps(value)}\n" for name, value in fields.items()).encode()

    def _token_rows(self, contents: PageContents) -> Iterator[memoryview]:
        """Yield the bytes that belong to tokens: keys layer by layer, then values.

        Pages of a layer follow each other, so what is behind the last token is all at its end.
        """
        layer_bytes = self.layout.layer_bytes(len(self.key.token_ids))
        for raw in (contents.k, contents.v):
            for start in range(0, self._contents_bytes, layer_bytes):
                yield raw[start : start + self._used_bytes]


def _first_difference(expected: bytes, received: bytes) -> str:
    """Return the field in which two headers differ; never a value, since those are private."""
    pairs = zip_longest(expected.splitlines(keepends=True), received.splitlines(keepends=True))
    line = next(line for line, other in pairs if line != other)
    return str(line.partition(b" ")[0], "ascii")
