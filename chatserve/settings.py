"""How a setting is declared, and how its value is found.

Owns the mechanism: a dataclass field carries a `Setting`, and from that one declaration come the
flag, the environment variable, the help text, the check of the value and the row in the README's
table. Knows no particular setting; those stand in `config.py`.

The one idea: a value is text until its kind has made it a value, wherever the text came from. A
flag beats its variable, a variable beats the default, and an empty variable counts as unset.
"""

from argparse import SUPPRESS, ArgumentParser
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any

from chatserve.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Kind:
    """What the text of a setting may look like, and which values make sense.

    `parse` raises ValueError with what was expected. `check` returns what is wrong with a value,
    or None. `switch` is the value that a bare flag stands for; other flags take one argument. One
    that `is_repeated` may be given several times, and its value is a tuple of what they came to.
    """

    parse: Callable[[str], Any]
    metavar: str | None = None
    check: Callable[[Any], str | None] | None = None
    switch: bool | None = None
    is_repeated: bool = False


@dataclass(frozen=True, slots=True)
class Setting:
    """What is known of one setting besides its name, type and default.

    A `flag` without leading dashes is a positional argument and has no variable; nor has one with
    `is_variable` off, which says what is to be done once and not how a service is set up.
    `default_text` describes a default that is no constant, or that reads better in other words.
    """

    flag: str
    meaning: str
    kind: Kind
    default_text: str | None = None
    is_variable: bool = True

    @property
    def is_positional(self) -> bool:
        return not self.flag.startswith("-")

    @property
    def variable(self) -> str | None:
        """The environment variable, `CHATSERVE_PAGE_SIZE` for `--page-size`."""
        if self.is_positional or not self.is_variable:
            return None
        return "CHATSERVE_" + self.flag.lstrip("-").replace("-", "_").upper()

    @property
    def label(self) -> str:
        """How messages name the setting: by flag and variable, whichever the reader used."""
        return f"{self.flag} ({self.variable})" if self.variable else self.flag

    def value_of(self, text: str) -> Any:
        """Turn text into the value, or raise ConfigError saying what was expected."""
        try:
            value = self.kind.parse(text)
        except ValueError as error:
            raise ConfigError(f"{self.label}: {error}") from None
        return value if self.kind.switch is None else value == self.kind.switch

    def text_of(self, value: Any) -> str:
        """Return the text that `value_of` turns into `value`; empty for None."""
        if value is None:
            return ""
        if self.kind.switch is not None:
            return "yes" if value == self.kind.switch else "no"
        return ",".join(value) if isinstance(value, tuple) else str(value)


def setting(
    flag: str,
    meaning: str,
    kind: Kind,
    *,
    default: Any,
    default_text: str | None = None,
    is_variable: bool = True,
) -> Any:
    """Return a dataclass field that carries a `Setting`."""
    metadata = {"setting": Setting(flag, meaning, kind, default_text, is_variable)}
    return field(default=default, metadata=metadata)


def settings_of(*config_types: type) -> Iterator[tuple[Field[Any], Setting]]:
    """Yield the settings of some config classes in order; a shared one comes once."""
    seen: set[str] = set()
    for config_type in config_types:
        for declared in fields(config_type):
            if "setting" in declared.metadata and declared.name not in seen:
                seen.add(declared.name)
                yield declared, declared.metadata["setting"]


def check_settings(config: Any) -> None:
    """Raise ConfigError for the first value that its own kind refuses."""
    for declared, known in settings_of(type(config)):
        value = getattr(config, declared.name)
        check = known.kind.check
        complaint = check(value) if check and value is not None else None
        if complaint:
            raise ConfigError(f"{known.label}: {complaint}")


def add_arguments(
    parser: ArgumentParser, *config_types: type, only: Collection[str] | None = None
) -> None:
    """Give `parser` one argument per setting, or per field in `only`.

    An argument not given leaves no trace.
    """
    for declared, known in settings_of(*config_types):
        if only is not None and declared.name not in only:
            continue
        text = f"{known.meaning} ({_origin(declared, known)})".replace("%", "%%")
        options: dict[str, Any] = {"default": SUPPRESS, "help": text}
        if known.is_positional:
            parser.add_argument(declared.name, nargs="?", metavar=known.flag, **options)
            continue
        if known.kind.switch is not None:
            options |= {"action": "store_const", "const": "yes"}
        else:
            options["metavar"] = known.kind.metavar
            options["action"] = "append" if known.kind.is_repeated else "store"
        parser.add_argument(known.flag, dest=declared.name, **options)


def find_values(
    config_type: type, arguments: Mapping[str, str | list[str]], environ: Mapping[str, str]
) -> dict[str, Any]:
    """Return the values that were given, by field name; what nobody gave is absent."""
    found = {}
    for declared, known in settings_of(config_type):
        text = arguments.get(declared.name)
        if text is None and known.variable:
            text = environ.get(known.variable) or None
        if isinstance(text, list):
            found[declared.name] = tuple(map(known.value_of, text))
        elif text is not None:
            found[declared.name] = known.value_of(text)
    return found


def to_environ(config: Any) -> dict[str, str]:
    """Return the variables from which a child process reads back the same config.

    Variables and not flags, so that a password in a URL never shows in a list of processes.
    """
    return {
        known.variable: known.text_of(getattr(config, declared.name))
        for declared, known in settings_of(type(config))
        if known.variable
    }


def settings_table(*config_types: type) -> str:
    """Return the settings as a Markdown table."""
    rows = ["| Flag | Variable | Default | Meaning |", "|---|---|---|---|"]
    for declared, known in settings_of(*config_types):
        default = _default_text(declared, known)
        rows.append(f"| `{known.flag}` | `{known.variable}` | {default} | {known.meaning} |")
    return "\n".join(rows) + "\n"


def _origin(declared: Field[Any], known: Setting) -> str:
    default = f"default: {_default_text(declared, known)}"
    return f"{default}; {known.variable}" if known.variable else default


def _default_text(declared: Field[Any], known: Setting) -> str:
    if known.default_text is not None:
        return known.default_text
    if known.kind.switch is not None:
        return "off"
    return known.text_of(declared.default) or "none"
