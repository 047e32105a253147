"""The one exception that the binaries turn into one line on stderr."""


class InputError(ValueError):
    """Something the user gave is wrong; the message is one line saying what to do.

    Raised for files, flags, settings and model directories that cannot be used.
    A binary prints `str(error)` and exits with status 1; a library caller sees an
    ordinary ValueError.
    """
