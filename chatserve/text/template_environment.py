"""The jinja dialect that chat templates are written in.

Owns the sandbox and the few names that published templates expect beside jinja's own:
`raise_exception`, `strftime_now`, a `tojson` that leaves Unicode alone, `break` and `continue` in
loops, and the `generation` block, which marks answers for training and changes nothing here.
Knows nothing of messages or tokens. A template comes with the weights, so it is a stranger's
program: it runs in jinja's sandbox, without files, attributes of Python objects or side effects.
"""

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any, NoReturn

import jinja2
from jinja2.ext import Extension
from jinja2.nodes import Node
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from chatserve.errors import ModelError


def compile_template(source: str, now: Callable[[], datetime]) -> jinja2.Template:
    """Compile a chat template.

    Raises:
        ModelError: `source` isn't a template.
    """
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.loopcontrols", _GenerationBlock],
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = lambda layout: now().strftime(layout)
    try:
        return environment.from_string(source)
    except jinja2.TemplateError as error:
        raise ModelError(f"the model's chat template cannot be compiled: {error}") from error


class _GenerationBlock(Extension):
    """`{% generation %}…{% endgeneration %}`, rendered as its body.

    Owns: nothing. Used from: jinja's parser.
    """

    tags = {"generation"}  # noqa: RUF012  jinja declares it as a plain set

    def parse(self, parser: Parser) -> list[Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )
