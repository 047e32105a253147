"""Hides matplotlib from programs: Python imports this when it starts.

It takes the place of any other sitecustomize.
"""

import sys

sys.modules["matplotlib"] = None
