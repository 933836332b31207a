"""What a target needs of this machine and is not there, with the remedy."""

from epcore.commands.doctor.doctor import run

__all__ = ["run"]
