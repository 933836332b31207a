"""A mistake of the program is one line, exit code 1, and a file with the traceback."""

import re
from pathlib import Path

import pytest

from epcore.commands import cli


@pytest.fixture
def broken(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def fail(arguments):
        raise ZeroDivisionError("many\nlines")

    monkeypatch.setattr(cli, "_run_command", fail)


def test_it_is_one_line_and_a_file(broken, capsys):
    assert cli.main(["status"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("epcore: unexpected ZeroDivisionError: many lines;")
    (path,) = re.findall(r"in (epcore-error-\w+\.txt)", line)
    assert "Traceback" in Path(path).read_text(encoding="utf-8")


def test_where_nothing_can_be_written_it_goes_elsewhere(broken, capsys, monkeypatch, tmp_path):
    real = cli.tempfile.mkstemp

    def full(suffix, prefix, folder):
        if folder == Path():
            raise OSError(28, "No space left on device")
        return real(suffix, prefix, folder)

    monkeypatch.setattr(cli.tempfile, "mkstemp", full)
    monkeypatch.setattr(cli.tempfile, "gettempdir", lambda: str(tmp_path))
    assert cli.main(["status"]) == 1
    (path,) = tmp_path.glob("epcore-error-*.txt")
    assert f"the traceback is in {path}:" in capsys.readouterr().err
