"""Reads a model from a Hugging Face folder: safetensors and tokenizer files.

Owns what is taken from which file; config.json is `hf_config`'s. Only safetensors are read, never a
pickle: opening a model must not be able to run code.
"""

from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer
from torch import Tensor

from chatserve.errors import ModelError
from chatserve.model.checkpoint import Checkpoint, TextAssets
from chatserve.model.hf_config import Json, read_config, read_json
from chatserve.model.precision import stored_dense

_INDEX = "model.safetensors.index.json"
_SINGLE_FILE = "model.safetensors"


def open_hf_folder(folder: Path) -> Checkpoint:
    """Open a Hugging Face model folder without reading its tensors yet."""
    config = read_config(folder)
    return Checkpoint(config, read_text_files(folder), ShardedTensors(folder).read, stored_dense)


class ShardedTensors:
    """The safetensors files of a folder, seen as one collection of named tensors.

    Owns: the open files, for as long as tensors are read.
    Used from: model loading.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self._shards: dict[str, Any] = {}
        self._shard_of: dict[str, str] | None = None
        if (folder / _INDEX).exists():
            self._shard_of = read_json(folder / _INDEX)["weight_map"]
        elif not (folder / _SINGLE_FILE).exists():
            raise ModelError(f"{folder} has neither {_SINGLE_FILE} nor {_INDEX}")

    def read(self, name: str) -> Tensor:
        """Return a tensor as it is stored, backed by the mapped file."""
        shard_name = _SINGLE_FILE if self._shard_of is None else self._shard_of.get(name)
        if shard_name is None:
            raise ModelError(f"{self._folder / _INDEX} names no file for tensor {name!r}")
        try:
            tensor: Tensor = self._shard(shard_name).get_tensor(name)
        except (SafetensorError, OSError) as error:
            raise ModelError(f"cannot read {name!r} from {self._folder}: {error}") from error
        return tensor

    def _shard(self, shard_name: str) -> Any:
        if shard_name not in self._shards:
            self._shards[shard_name] = safe_open(self._folder / shard_name, framework="pt")
        return self._shards[shard_name]


def read_text_files(folder: Path) -> TextAssets:
    """Read tokenizer, chat template and special tokens.

    Raises:
        ModelError: There is no tokenizer.json, or a file cannot be read.
    """
    tokenizer = _read_tokenizer(folder / "tokenizer.json")
    settings = _read_optional_json(folder / "tokenizer_config.json")
    generation = _read_optional_json(folder / "generation_config.json")
    bos_token = _token_string(settings.get("bos_token"))
    eos_token = _token_string(settings.get("eos_token"))
    eos_ids = generation.get("eos_token_id", tokenizer.token_to_id(eos_token or ""))
    return TextAssets(
        tokenizer_json=tokenizer.to_str(),
        chat_template=_read_chat_template(folder, settings),
        bos_token=bos_token,
        eos_token=eos_token,
        eos_token_ids=_as_ids(eos_ids),
        adds_bos=_adds_bos(tokenizer, bos_token),
        default_temperature=generation.get("temperature", 1.0),
        default_top_p=generation.get("top_p", 1.0),
        default_top_k=generation.get("top_k", 0),
    )


def _read_tokenizer(file: Path) -> Tokenizer:
    if not file.exists():
        raise ModelError(f"{file.parent} has no tokenizer.json")
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises nothing narrower
        raise ModelError(f"cannot read {file}: {error}") from error
    # Left over from training, these would silently cut prompts or fill them up.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _read_chat_template(folder: Path, settings: Json) -> str | None:
    """Return the template from its own file or from the tokenizer's settings, in this order."""
    own_file = folder / "chat_template.jinja"
    if own_file.exists():
        return own_file.read_text(encoding="utf-8")
    template = settings.get("chat_template")
    if isinstance(template, list):  # several named templates
        named = {entry["name"]: entry["template"] for entry in template}
        template = named.get("default")
    return template


def _adds_bos(tokenizer: Tokenizer, bos_token: str | None) -> bool:
    """Return whether the tokenizer itself puts the token before a raw prompt."""
    if bos_token is None:
        return False
    encoded: list[int] = tokenizer.encode("").ids
    return encoded[:1] == [tokenizer.token_to_id(bos_token)]


def _token_string(entry: str | Json | None) -> str | None:
    """Return a special token's text, which may be given as a record of the token's properties."""
    return entry["content"] if isinstance(entry, dict) else entry


def _as_ids(entry: int | list[int] | None) -> tuple[int, ...]:
    if entry is None:
        return ()
    return tuple(entry) if isinstance(entry, list) else (entry,)


def _read_optional_json(path: Path) -> Json:
    return read_json(path) if path.exists() else {}
