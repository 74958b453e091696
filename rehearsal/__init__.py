"""The dress rehearsal: tiny, faithful copies of what the paper profiles read, and a run of them."""
