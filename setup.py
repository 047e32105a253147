"""Packaging: the wheel holds t2t_lite; data/ and bin/ run from a checkout."""

import setuptools

_MATPLOTLIB = "matplotlib>=3.9,<4"

setuptools.setup(
    name="t2t_lite",
    version="0.1.0",
    description="Attention Is All You Need on TensorFlow and Keras",
    license="Apache-2.0",
    python_requires=">=3.11",
    # So an editable install has this folder on the path, and no program that
    # starts beside a checkout called t2t_lite takes that for the package. (It
    # finds data/ and tests/ too, after all that is installed.)
    package_dir={"": "."},
    packages=["t2t_lite"],
    package_data={"t2t_lite": ["*.html"]},
    install_requires=[
        "absl-py>=2.1,<3",
        "importlib_resources>=6",  # tensorflow-datasets does not install it.
        "keras>=3.15,<3.16",
        "sacrebleu>=2.5,<3",
        "sacremoses>=0.2,<0.3",  # Tokenizes for BLEU the paper's way.
        "sentencepiece>=0.2,<0.3",
        "tensorboard>=2.20,<2.22",  # tf.summary needs it.
        "tensorflow>=2.21,<2.22",
        "tensorflow-datasets>=4.9.9,<5",
        "tensorflow-serving-api>=2.21,<2.22",  # Warm-up requests of exports.
        "tensorflow-text>=2.21,<2.22",
        "tqdm>=4.66,<5",
    ],
    extras_require={
        "cuda": ["tensorflow[and-cuda]>=2.21,<2.22"],
        "figures": [_MATPLOTLIB],
        "test": [
            _MATPLOTLIB,
            "jax[cpu]>=0.6,<0.12",
            "pytest>=8,<10",
            "ruff>=0.12,<0.18",
            "selenium>=4.20,<5",
        ],
    },
)
