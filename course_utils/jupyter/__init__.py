"""What the course adds to Jupyter itself; nothing here is imported by a lesson but ``progress``."""
