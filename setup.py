"""For tools that ask for a setup.py; all is said in pyproject.toml."""

import setuptools

setuptools.setup()
