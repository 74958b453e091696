"""From a source to a collection, its duplicates, splits, evaluation sets, tokens, negatives."""
