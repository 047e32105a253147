"""How to run training, apart from what is trained."""

import dataclasses
import math
import os
from collections.abc import Collection, Mapping
from typing import Any

from t2t_lite import files
from t2t_lite.errors import InputError

_AT_LEAST_1 = (
    "micro_batch_tokens",
    "save_every_steps",
    "keep_last",
    "evaluate_every_steps",
    "patience",
    "max_skips",
)
_ABOVE_0 = (
    "worker_timeout_minutes",
    "memory_limit_gib",
    "sustained_tflops",
    "hang_minutes",
)


@dataclasses.dataclass(frozen=True)
class RunOptions:
    """How to run; all of it may change when a run is resumed.

    Raises:
        InputError: a number is out of its range.
    """

    strategy: str = "auto"  # a name that `make_strategy` takes
    worker_timeout_minutes: float | None = None  # for all to join; None: 10
    precision: str = "float32"  # or "bfloat16", "float16", "auto"
    xla: bool = False
    micro_batch_tokens: int | None = None  # None: as many as fit the memory
    memory_limit_gib: float | None = None  # of a device; None: all there is
    save_every_minutes: float | None = None  # None: 10
    save_every_steps: int | None = None  # instead of minutes
    keep_last: int | None = None  # None: as many as are averaged, at least 2
    evaluate_every_steps: int | None = None  # None: five times in a run
    patience: int | None = None  # evaluations without a better dev score
    warm_start_from: str | None = None  # path: model directory or checkpoint
    vocabulary: str | None = None  # path of a SentencePiece model
    cache_dir: str | None = None  # of tokens; None: the model directory
    sustained_tflops: float | None = None  # of one device, to estimate the cost
    divergence_factor: float | None = None  # of the mean loss; None: no limit
    on_divergence: str = "stop"  # or "skip"
    max_skips: int = 3  # in a run, before it stops
    hang_minutes: float | None = None  # without an update; None: no limit

    def __post_init__(self) -> None:
        for name in _AT_LEAST_1:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(
                    f"{name} must be at least 1; received {name}={value}"
                )
        minutes = self.save_every_minutes
        if minutes is not None and not minutes >= 0:  # NaN is refused too.
            raise InputError(
                "save_every_minutes must be at least 0; received "
                f"save_every_minutes={minutes}"
            )
        for name in _ABOVE_0:
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise InputError(
                    f"{name} must be above 0 and finite; received "
                    f"{name}={value}"
                )
        self._check_divergence()

    def _check_divergence(self) -> None:
        factor = self.divergence_factor
        if factor is not None and not 1 < factor < math.inf:
            raise InputError(
                "divergence_factor must be above 1 and finite; received "
                f"divergence_factor={factor}"
            )
        if self.on_divergence not in ("stop", "skip"):
            raise InputError(
                "on_divergence must be stop or skip; received "
                f"on_divergence={self.on_divergence}"
            )

    def with_save_every_steps(self, steps: int) -> "RunOptions":
        """Returns options with `steps` for save_every_steps if none is set.

        Options that set minutes stay as they are.

        Args:
            steps: int, those of the settings; 0 if they have none.

        >>> RunOptions().with_save_every_steps(200).save_every_steps
        200
        >>> given = RunOptions(save_every_steps=50)
        >>> given.with_save_every_steps(200).save_every_steps
        50
        >>> given = RunOptions(save_every_minutes=10.0)
        >>> given.with_save_every_steps(200).save_every_steps is None
        True
        """
        if self.save_every_steps or self.save_every_minutes is not None:
            return self
        return dataclasses.replace(self, save_every_steps=steps or None)

    @property
    def in_parts(self) -> bool:
        """Whether a CPU, if it trains, computes parts side by side."""
        is_auto_one = self.strategy == "auto" and not os.environ.get(
            "TF_CONFIG"
        )
        return not self.xla and (is_auto_one or self.strategy == "one_device")

    def require_files(self) -> None:
        """Checks the files and folders that options name.

        Raises:
            InputError: a file does not exist, or a folder is not local.
        """
        # A checkpoint is given without the suffixes of its files.
        for name, suffixes in (
            ("vocabulary", ("",)),
            ("warm_start_from", ("", ".index")),
        ):
            given = getattr(self, name)
            path = given or os.curdir
            if not any(files.exists(f"{path}{s}") for s in suffixes):
                raise InputError(f"--{name}: {given} does not exist")
        if self.cache_dir is not None and files.is_remote(self.cache_dir):
            raise InputError(
                f"--cache_dir must be a local folder; received {self.cache_dir}"
            )

    def require_splits(self, splits: Collection[str]) -> None:
        """Raises InputError if an option needs a split that is missing."""
        if "dev" not in splits:
            self.require_no_dev_text()

    def require_no_dev_text(self) -> None:
        """Raises InputError if an option has no effect without dev text."""
        for name in ("evaluate_every_steps", "patience"):
            if getattr(self, name) is not None:
                raise InputError(
                    f"{name} needs dev text: give --dev_source and "
                    "--dev_target, or --dev_trees"
                )

    @classmethod
    def from_flags(cls, values: Mapping[str, Any]) -> "RunOptions":
        """Returns the options among the values of a program's flags.

        Raises:
            InputError: a number is out of its range.

        >>> flags = {"hparams": "transformer_base"} | vars(RunOptions(xla=True))
        >>> RunOptions.from_flags(flags).xla
        True
        """
        names = [field.name for field in dataclasses.fields(cls)]
        return cls(**{name: values[name] for name in names})
