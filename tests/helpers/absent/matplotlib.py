"""The same for matplotlib."""

raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")
