"""The translators that the test files of this folder share."""

from shared_translators import (  # noqa: F401, fixtures
    compiled,
    directories,
    divided,
    engine_of,
    model,
    steered,
    translator,
    vocabulary,
)
