"""The version, in a module of its own: all layers may import it, which they cannot do with the package itself."""

__version__ = "0.2.0"
