"""Whether a request can be served at all, decided before anything is stored.

Owns the checks that need the model card: the length of the prompt, the range of token ids, the
model's sampling defaults, and what the context leaves for the answer; and how long a request may
take. Pure; knows no store.

A request that could never run is refused here, with the sizes in the message. One that merely has
to wait is not this module's business.
"""

import secrets
from collections.abc import Sequence
from typing import TypeVar

from chatserve.engine.api import ModelCard, SamplingParams
from chatserve.errors import InvalidRequest
from chatserve.protocol.sampling import SamplingFields
from chatserve.text.prompt_bound import max_prompt_tokens, prompt_too_long

# Every seed a client may send fits in 64 bits; a drawn one also survives a JavaScript number.
_SEED_SPACE = 2**63
_DRAWN_SEED_BITS = 53

# 2^64 divided by the golden ratio, whose multiples lie far apart (Knuth, TAOCP 3, section 6.4). So
# clients that count their seeds up do not meet the choices of their own neighbours.
_SEED_STRIDE = 0x9E3779B97F4A7C15

N = TypeVar("N", int, float)


def check_prompt(token_ids: Sequence[int], card: ModelCard, *, param: str) -> None:
    """Raise InvalidRequest for a prompt that this model could never be given.

    Args:
        token_ids: The prompt.
        card: The model.
        param: The field that the prompt came from.
    """
    if not token_ids:
        raise InvalidRequest(f"{param}: the prompt is empty", param=param)
    if len(token_ids) > max_prompt_tokens(card):
        raise prompt_too_long(card, str(len(token_ids)), param=param)
    check_ids(token_ids, card, param=param)


def check_choices(n: int, max_queue: int) -> None:
    """Raise InvalidRequest where one request's choices could never wait together."""
    if n > max_queue:
        raise InvalidRequest(
            f"n: {n} choices do not fit a queue of {max_queue} (--max-queue)", param="n"
        )


def sampling_params(
    fields: SamplingFields,
    card: ModelCard,
    *,
    prompt_len: int,
    default_max_tokens: int | None = None,
) -> SamplingParams:
    """Return the parameters of a request, or raise InvalidRequest.

    Args:
        fields: What the client said.
        card: The model, for its defaults and its context.
        prompt_len: Tokens of the prompt.
        default_max_tokens: The limit where the client named none; None means all that is left.
    """
    check_ids(fields.stop_token_ids, card, param="stop_token_ids")
    room = card.max_model_len - prompt_len
    wanted = fields.output_limit or default_max_tokens or room
    max_tokens = min(wanted, room)
    drawn = secrets.randbits(_DRAWN_SEED_BITS)
    return SamplingParams(
        max_tokens=max_tokens,
        seed=(drawn if fields.seed is None else fields.seed) % _SEED_SPACE,
        temperature=_given(fields.temperature, card.default_temperature),
        top_p=_given(fields.top_p, card.default_top_p),
        # -1 is another spelling of "the whole vocabulary".
        top_k=max(0, _given(fields.top_k, card.default_top_k)),
        min_p=fields.min_p,
        min_tokens=min(fields.min_tokens, max_tokens),
        stop=tuple(fields.stop),
        stop_token_ids=tuple(fields.stop_token_ids),
        ignore_eos=fields.ignore_eos,
    )


def seed_of_choice(seed: int, index: int) -> int:
    """Return the seed of one choice of a request; the first has the request's own."""
    return (seed + index * _SEED_STRIDE) % _SEED_SPACE


def timeout_ms(asked_s: float | None, limit_s: float | None) -> int | None:
    """Return how long a request may take from enqueue to end, None for as long as it likes.

    The shorter of what its client asked and what the operator allows holds.
    """
    limits_s = [seconds for seconds in (asked_s, limit_s) if seconds is not None]
    return max(1, round(1e3 * min(limits_s))) if limits_s else None


def _given(value: N | None, default: N) -> N:
    return default if value is None else value


def check_ids(token_ids: Sequence[int], card: ModelCard, *, param: str) -> None:
    """Raise InvalidRequest for the first id that is none of the model's."""
    worst = next((i for i in token_ids if not 0 <= i < card.vocab_size), None)
    if worst is not None:
        raise InvalidRequest(
            f"{param}: token id {worst} is outside the vocabulary of {card.vocab_size} tokens",
            param=param,
        )
