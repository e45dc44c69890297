"""Who asks what in each scenario."""

from benchmarks.chat_load.scenario import Load, Scenario, plan_load, random_words


def test_a_scenario_fixes_what_it_is_about_and_leaves_the_rest() -> None:
    asked = Load(Scenario.BURST, "seed", num_sessions=5, concurrency=2, max_tokens=7)

    planned = plan_load(asked)

    assert (planned.concurrency, planned.num_turns, planned.num_tenants) == (5, 1, 1)
    assert (planned.num_sessions, planned.max_tokens, planned.system_words) == (5, 7, 800)


def test_only_shared_system_has_several_turns() -> None:
    turns = {each: plan_load(Load(each, "seed")).num_turns for each in Scenario}

    assert turns == {
        Scenario.SHARED_SYSTEM: 3,
        Scenario.WARM_TTFT: 1,
        Scenario.BURST: 1,
        Scenario.SINGLE: 1,
    }


def test_only_warm_ttft_asks_every_prompt_before_the_clock_runs() -> None:
    assert [each for each in Scenario if Load(each, "seed").is_primed] == [Scenario.WARM_TTFT]


def test_prompts_follow_from_the_seed() -> None:
    first, again = (Load(Scenario.SHARED_SYSTEM, "one") for _ in range(2))
    other = Load(Scenario.SHARED_SYSTEM, "two")

    assert first.system_message(1) == again.system_message(1)
    assert first.system_message(1) != other.system_message(1)
    assert first.question(0, 0) != first.question(0, 1)
    assert first.question(0, 0) != first.question(1, 0)


def test_random_words_are_as_many_as_asked_for() -> None:
    assert len(random_words("seed", 24).split()) == 24
