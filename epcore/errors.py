"""The one exception that stands for a mistake a person can mend."""


class UserError(Exception):
    """A wrong config key, file or request: one line that says what, where and what to do.

    The command line prints the message without a traceback and exits with a code other than 0.
    """

    def __init__(self, message: str) -> None:
        # Messages of other libraries, quoted in ours, may have several lines.
        super().__init__(" ".join(message.split("\n")).rstrip())
