"""Which flags each action of `chatserve prompt` takes."""

import re

import pytest

from chatserve.admin.prompt_config import PromptConfig
from chatserve.command_line import load_config
from chatserve.errors import ConfigError
from chatserve.settings import settings_of


def test_bare_command_lists_all_tenants() -> None:
    config = load_config(["prompt"], {})

    assert isinstance(config, PromptConfig)
    assert (config.action, config.tenant, config.redis_url) == ("list", None, None)


def test_add_takes_what_a_prompt_may_have() -> None:
    argv = ["prompt", "add", "support", "--tenant", "acme", "--file", "-", "--no-pin"]

    config = load_config([*argv, "--priority", "3", "--ttl", "90", "--no-wait"], {})

    assert isinstance(config, PromptConfig)
    assert (config.name, config.tenant, config.file) == ("support", "acme", "-")
    assert (config.is_pinned, config.priority, config.ttl_s) == (False, 3, 90.0)
    assert not config.waits


def test_a_variable_is_given_once_for_each_name_and_its_default_may_hold_anything() -> None:
    argv = ["prompt", "add", "support", "--file", "-", "--variable", "a=1,=2", "--variable", "b="]

    config = load_config(argv, {})

    assert isinstance(config, PromptConfig)
    assert config.variables == (("a", "1,=2"), ("b", ""))


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("list support", "`prompt list` takes no name"),
        ("list --file -", "--file is not for `prompt list`"),
        ("show support --json", "--json is not for `prompt show`"),
        ("remove support --no-pin", "--no-pin is not for `prompt remove`"),
        ("show", "prompt show: name a prompt, or the preamble by --public"),
        ("add --file -", "prompt add: name a prompt"),
        ("add support", "say by --file where the text is"),
        ("add support --file - --ttl 9", "--ttl: a pinned prompt is kept for good"),
        ("add --public --tenant acme --file -", "the preamble belongs to no tenant"),
        ("add support --file - --priority 1001", "--priority: must be from -1000 to 1000"),
        ("fetch support", "must be one of list, add, show, remove, activate, pin, unpin"),
        ("activate support", "prompt activate: say by --version which one"),
        ("activate support --version 0", "--version: must be from 1"),
        ("list --version 1", "--version is not for `prompt list`"),
        ("pin support --variable a=b", "--variable is not for `prompt pin`"),
        ("add support --file - --variable a", "--variable: expected a name, = and a value, got"),
        ("add s --file - --variable a=b --variable a=c", "there are two defaults for 'a'"),
    ],
)
def test_flags_that_make_no_sense_are_refused(line: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        load_config(["prompt", *line.split()], {})


def test_only_where_the_store_is_may_come_from_a_variable() -> None:
    variables = {known.variable for _, known in settings_of(PromptConfig)}

    assert variables == {None, "CHATSERVE_REDIS_URL", "CHATSERVE_DATA_DIR"}


def test_a_forgotten_variable_does_not_turn_a_command_into_another() -> None:
    environ = {"CHATSERVE_PUBLIC": "yes", "CHATSERVE_TENANT": "acme", "CHATSERVE_JSON": "yes"}

    config = load_config(["prompt", "remove", "support"], environ)

    assert config == load_config(["prompt", "remove", "support"], {})


def test_help_names_no_variable_for_what_is_done_once(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        load_config(["prompt", "--help"], {})

    text = " ".join(capsys.readouterr().out.split())
    assert "list: as JSON (default: off)" in text
    assert set(re.findall(r"CHATSERVE_\w+", text)) == {
        "CHATSERVE_REDIS_URL",
        "CHATSERVE_DATA_DIR",
    }
