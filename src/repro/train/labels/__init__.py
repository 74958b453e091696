"""Labels of other kinds than the dataset's own: made by rule, by a model, or wrong on purpose."""
