"""The figures of the notebooks, one module a notebook; each function returns a `Drawing`."""
