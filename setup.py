"""For tools that expect a setup.py; everything is in pyproject.toml."""

import setuptools

setuptools.setup()
