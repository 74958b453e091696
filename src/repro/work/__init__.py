"""Run tasks: the queue that any number of workers share, and the workers of this machine."""
