"""Show: tables and answers in; figures, sentences and verdicts out."""
