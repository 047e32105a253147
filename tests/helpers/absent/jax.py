"""What programs find for JAX where `binaries.environment` leaves it out."""

raise ModuleNotFoundError("No module named 'jax'", name="jax")
