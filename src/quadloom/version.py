"""The version, where every layer may read it: the package itself imports the layers, so they cannot import it."""

__version__ = "0.1.0"
