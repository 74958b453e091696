"""Scaling laws on any table of losses: forms, fits, intervals, hold-outs, allocation.  No torch."""
