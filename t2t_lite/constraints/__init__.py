"""What a hypothesis of a search may continue with, and what it must contain."""
