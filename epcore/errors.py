"""The one exception that stands for a mistake a person can mend."""


class UserError(Exception):
    """A wrong config key, file or request: one line that says what, where and what to do.

    The command line prints the message without a traceback and exits with a code other than 0.
    """
