"""Writes the average of a model's last checkpoints into its averaged/ folder.

Other commands read it with --checkpoint=averaged.
"""

from absl import flags

from t2t_lite import cli
from t2t_lite.errors import program
from t2t_lite.storage import checkpoint_files, settings_file

FLAGS = flags.FLAGS
flags.DEFINE_string(
    "model_dir",
    None,
    f"Required: the directory that {program('train')} wrote.",
    allow_overwrite=False,
)
flags.mark_flag_as_required("model_dir")
flags.DEFINE_integer(
    "average_last",
    None,
    "How many checkpoints to average. Default: the model's setting (5 or 20 "
    "in the paper).",
    lower_bound=1,
)


def main(_: list[str]) -> int:
    settings = settings_file.read(FLAGS.model_dir)
    count = FLAGS.average_last or settings["hparams"].average_last
    checkpoint_files.require(FLAGS.model_dir, average_last=count)
    cli.load_tensorflow()
    from t2t_lite.storage import model_directory

    directory = model_directory.ModelDirectory(FLAGS.model_dir)
    path, averaged = directory.write_average(count)
    print(f"{path}: the average of {', '.join(p.name for p in averaged)}")
    return 0
