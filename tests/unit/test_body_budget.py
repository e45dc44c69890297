"""How many bytes of bodies may be on their way at once."""

import pytest

from chatserve.errors import Unavailable
from chatserve.gateway.body_budget import BodyBudget


def test_bodies_share_the_room_and_give_it_back_when_they_end() -> None:
    budget = BodyBudget(max_bytes=10)

    with budget.reading() as take, budget.reading() as take_other:
        take(4)
        take_other(6)
        with pytest.raises(Unavailable) as refusal:
            take(1)

    assert (refusal.value.status, refusal.value.code) == (503, "too_many_bodies")
    with budget.reading() as take_all:
        take_all(10)


def test_body_that_is_broken_off_gives_its_room_back() -> None:
    budget = BodyBudget(max_bytes=10)
    reading = budget.reading()
    take = reading.__enter__()
    take(10)

    reading.__exit__(ZeroDivisionError, None, None)

    with budget.reading() as take_all:
        take_all(10)
