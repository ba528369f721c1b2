"""The version, in one place: pyproject.toml, model files and `ecad --version` read it."""

__version__ = "0.1.0"
