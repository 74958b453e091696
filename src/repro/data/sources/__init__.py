"""Sources: each reads one kind of collection, in one small file with its own parameters."""
