"""The site: executed notebooks, how-to pages and the reference as static pages (`repro site`)."""
