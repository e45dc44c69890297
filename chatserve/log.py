"""How every process of the service prints its log.

Owns the format: time, level, role, logger, message, on standard error. Children of the supervisor
inherit its standard error, so that one terminal shows them all and the role tells them apart.

Prompts, answers, keys and addresses with passwords never go into a message; ids do.
"""

import logging


def configure_logging(level: str, role: str) -> None:
    """Set up the root logger of this process; `role` is `serve`, `gateway` or `engine`."""
    logging.basicConfig(
        level=level.upper(),
        format=f"%(asctime)s %(levelname)-7s {role:<7} %(name)s: %(message)s",
        force=True,
    )
