"""What programs import as JAX where `binaries.environment` hides it.

None in sys.modules, as for matplotlib, would be taken for a JAX that is already
imported.
"""

raise ModuleNotFoundError("No module named 'jax'", name="jax")
