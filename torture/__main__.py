"""`python -m torture --minutes 60`."""

from torture.run import main

if __name__ == "__main__":
    raise SystemExit(main())
