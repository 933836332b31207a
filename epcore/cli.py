"""The command line: each stage of the pipeline is a sub-command that also runs by hand.

Stages are imported when they run, so that no job loads what it does not use.
"""

import contextlib
import importlib
import json
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from epcore.errors import UserError, replace_unencodable, visible
from epcore.interruption import Interrupted, leave_on_signals
from epcore.options import parser
from epcore.outputs import COMMAND_OUTPUTS, check_command, check_outputs
from epcore.stages import STAGES

# Commands that are no stages, and what runs them.
COMMANDS = {
    "fetch": "epcore.data.fetch",
    "classify": "epcore.evaluation.classify",
    "import-weights": "epcore.evaluation.import_weights",
    "embed-folder": "epcore.evaluation.embed_folder",
    "co2": "epcore.footprint.report",
    "forecast": "epcore.footprint.forecast",
    "status": "epcore.status",
    "doctor": "epcore.doctor",
    "show": "epcore.report.show",
    "schema": "epcore.plan.schema",
}


def _run(arguments: dict[str, Any]) -> None:
    name = arguments.pop("command")
    if name in COMMANDS:
        _run_command(name, arguments)
    else:
        _run_stage(name, arguments)


def _run_command(name: str, arguments: dict[str, Any]) -> None:
    if "scale" in arguments and arguments["scale"] is None:
        from epcore.plan.registry import main_config

        arguments["scale"] = main_config(arguments["settings"]).scale
    if name in COMMAND_OUTPUTS:
        check_command(name, arguments)
    with contextlib.ExitStack() as stack:
        if name == "fetch" and arguments["receipt"] is not None:
            from epcore.footprint.tracker import tracked

            stack.enter_context(tracked(name, arguments["receipt"]))
        importlib.import_module(COMMANDS[name]).run(**arguments)


def _run_stage(name: str, arguments: dict[str, Any]) -> None:
    from epcore.footprint.tracker import tracked
    from epcore.job import resolved
    from epcore.plan.environment import compute_with

    stage = STAGES[name]
    gpus, allow_cpu = arguments.pop("gpus", None), arguments.pop("allow_cpu", False)
    if arguments.get("config") is not None:
        arguments["config"] = _read_config(arguments["config"])
    by_hand = bool(arguments["out"])
    arguments = resolved(name, arguments)
    if threads := getattr(arguments.get("stage"), "threads", None):
        compute_with(threads)
    check_outputs(name, arguments, by_hand)
    if gpus is not None:
        from epcore.gpus import claim

        gpus = claim(gpus, allow_cpu)
    if name == "pretrain":
        arguments["gpus"] = gpus or 1  # that train together
    made = arguments["out"][0] if isinstance(arguments["out"], list) else arguments["out"]
    with tracked(name, made / stage.makes, gpus or 0):
        importlib.import_module(stage.module).run(**arguments)


def _read_config(text: str) -> Any:
    try:
        if not text.lstrip().startswith("{"):
            text = Path(text).read_text(encoding="utf-8")
        return json.loads(text)
    except OSError as error:
        raise UserError(f"--config: {text} cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UserError(f"--config: {text}: this is not UTF-8 text; save it as UTF-8") from None
    except (ValueError, RecursionError) as error:  # also of numbers of thousands of digits
        raise UserError(f"--config: this is not valid JSON ({error})") from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one stage; 0 if it succeeded, 2 after a mistake that the message explains.

    It is 1 after a mistake of the program, whose traceback goes into a file. After a signal it is
    128 and the signal's number, as shells have it.
    """
    leave_on_signals()
    replace_unencodable()
    try:
        _run(vars(parser().parse_args(arguments)))
    except UserError as error:
        _say(str(error))
        return 2
    except BrokenPipeError:  # what was piped into has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _say(f"{where}{error.strerror or error}")
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
    except Exception as error:  # a mistake of this program
        _say(_unexpected(error))
        return 1
    return 0


def _say(text: str) -> None:
    print(f"epcore: {visible(text)}", file=sys.stderr)


def _unexpected(error: Exception) -> str:
    """One line, and where the traceback is: in the working folder, or where there is room."""
    told = " ".join(str(error).split())[:200]
    text, where = "".join(traceback.format_exception(error)), "its traceback could not be written"
    for folder in (Path(), Path(tempfile.gettempdir())):
        with contextlib.suppress(OSError):
            # A new file: in a folder of all users, any known name may be a link of somebody's.
            descriptor, name = tempfile.mkstemp(".txt", "epcore-error-", folder)
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
            where = f"the traceback is in {folder / Path(name).name}: please report it"
            break
    return f"unexpected {type(error).__name__}: {told}; this is a mistake of the program, {where}"
