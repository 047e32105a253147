"""The one exception that the binaries turn into one line on stderr."""


class InputError(ValueError):
    """Something the user gave is wrong; one line says what to do.

    Raised for files, flags, settings and model directories that cannot be
    used. A binary prints the line and exits with status 1; a library's caller
    sees an ordinary ValueError.
    """
