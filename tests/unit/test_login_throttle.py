"""How often a login may fail."""

import pytest

from chatserve.errors import RateLimited
from chatserve.gateway.login_throttle import MAX_FAILURES, WINDOW_S, LoginThrottle


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def fail(throttle: LoginThrottle, address: str) -> None:
    for _ in range(MAX_FAILURES):
        throttle.begin(address)


def test_after_some_failures_an_address_has_to_wait_for_the_rest_of_its_window() -> None:
    clock = Clock()
    throttle = LoginThrottle(clock)
    fail(throttle, "a")
    clock.now = WINDOW_S - 1.5

    with pytest.raises(RateLimited) as refusal:
        throttle.begin("a")

    assert refusal.value.retry_after_s == 2
    clock.now = WINDOW_S
    throttle.begin("a")


def test_failures_of_one_address_count_for_no_other() -> None:
    throttle = LoginThrottle(Clock())
    fail(throttle, "a")

    fail(throttle, "b")

    with pytest.raises(RateLimited):
        throttle.begin("b")


def test_an_attempt_that_succeeds_is_forgiven() -> None:
    throttle = LoginThrottle(Clock())

    for _ in range(10 * MAX_FAILURES):
        throttle.begin("a")
        throttle.forgive("a")

    fail(throttle, "a")


def test_attempts_under_way_count_like_failures() -> None:
    throttle = LoginThrottle(Clock())
    fail(throttle, "a")

    with pytest.raises(RateLimited):
        throttle.begin("a")

    throttle.forgive("a")
    throttle.begin("a")


def test_the_oldest_of_too_many_addresses_is_forgotten() -> None:
    throttle = LoginThrottle(Clock())
    fail(throttle, "first")

    for number in range(10_000):
        throttle.begin(f"other {number}")

    throttle.begin("first")
