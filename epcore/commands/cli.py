"""The command line. A mistake of the user ends it with one line."""

import contextlib
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from epcore.commands.options import parser
from epcore.commands.stages import COMPUTE, run_command
from epcore.errors import UserError, replace_unencodable, visible
from epcore.runtime.interruption import Interrupted, leave_on_signals

# Commands that are no stages, and what runs them.
COMMANDS = {
    "fetch": "epcore.commands.fetch",
    "classify": "epcore.commands.classify",
    "import-weights": "epcore.commands.import_weights",
    "embed-folder": "epcore.commands.embed_folder",
    "predict": "epcore.commands.predict",
    "forecast": "epcore.commands.forecast",
    "status": "epcore.commands.status",
    "doctor": "epcore.commands.doctor",
    "show": "epcore.commands.show",
    "schema": "epcore.config.schema",
}


def _run_command(arguments: dict[str, Any]) -> None:
    name = arguments.pop("command")
    if "overrides" in arguments:
        from epcore.plan.registry import main_config

        overrides, scale = dict(arguments.pop("overrides")), arguments.pop("scale")
        overrides |= {"scale": scale} if scale else {}
        arguments["main"] = main_config(arguments["settings"], overrides)
    with contextlib.ExitStack() as stack:
        if name == "fetch" and arguments["receipt"] is not None:
            from epcore.footprint.tracker import tracked

            stack.enter_context(tracked(name, arguments["receipt"]))
        importlib.import_module(COMMANDS[name]).run(**arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns its exit code, that of `exit_code`."""
    words = sys.argv[1:] if arguments is None else arguments
    if words and words[0] in COMPUTE:
        return exit_code(lambda: run_command(words[0], words[1:]))
    return exit_code(lambda: _run_command(vars(parser().parse_args(words))))


def exit_code(action: Callable[[], None]) -> int:
    """Does something; 0 if it succeeded, 2 after a mistake that the message explains.

    It is 1 after a mistake of the program, whose traceback is printed. After a signal it is 128 and
    the signal's number, as shells have it.
    """
    leave_on_signals()
    replace_unencodable()
    try:
        action()
    except UserError as error:
        _say(str(error))
        return 2
    except BrokenPipeError:  # what was piped into has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        location = f"{error.filename}: " if error.filename else ""
        _say(f"{location}{error.strerror or error}")
        return 2
    except Interrupted as request:
        _say("interrupted; what was finished is kept")
        return 128 + request.number
    except ModuleNotFoundError as error:
        _say(
            f"the package {error.name} is not installed in {sys.prefix}; `make` installs all into "
            ".venv, and `source .venv/bin/activate` uses it"
        )
        return 2
    except Exception:  # a mistake of this program
        traceback.print_exc()
        return 1
    return 0


def _say(text: str) -> None:
    print(f"epcore: {visible(text)}", file=sys.stderr)
