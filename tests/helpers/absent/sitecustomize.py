"""Python imports this at its start: programs find no matplotlib.

In place of another sitecustomize, if there is one.
"""

import sys

sys.modules["matplotlib"] = None
