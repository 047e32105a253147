"""What programs find for JAX where `binaries.environment` leaves it out.

None among sys.modules, as for matplotlib, would be taken for a JAX that was
imported.
"""

raise ModuleNotFoundError("No module named 'jax'", name="jax")
