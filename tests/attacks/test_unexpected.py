"""A mistake of the program ends with exit code 1 and its traceback."""

from epcore.commands import cli


def test_a_mistake_of_the_program_prints_its_traceback(monkeypatch, capsys):
    monkeypatch.setattr(cli, "_run_command", lambda arguments: 1 / 0)
    assert cli.main(["status"]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith("Traceback")
    assert "ZeroDivisionError" in printed
