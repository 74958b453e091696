"""How a run is asked, by a signal, to keep its state or to stop; without being asked it runs on."""

from __future__ import annotations

from typing import Literal

Wish = Literal["", "keep", "stop"]


class Paused(BaseException):
    """The work was asked to stop, and all that it will need to go on is on disk.

    No `Exception`: whoever sets failures aside must not take it for one.
    """


class Pause:
    """The wish of whoever started the work: a signal handler sets it, the training loop looks at it.

    Between steps nothing is lost, so the loop writes its state there and then stops.  Work that does
    not listen (it is short, or keeps what it has) is stopped where it is.
    """

    def __init__(self) -> None:
        self.wish: Wish = ""
        self.listens = False

    def ask(self, wish: Wish) -> None:
        """Ask for that; called in a signal handler."""
        if self.listens:
            self.wish = "stop" if "stop" in (wish, self.wish) else wish
        elif wish == "stop":
            raise Paused

    def heed(self) -> None:
        """Do what was asked for, now that the state is kept; raises `Paused` where that is to stop."""
        wish, self.wish = self.wish, ""
        if wish == "stop":
            raise Paused
