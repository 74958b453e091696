"""What is wrong, and where, with the remedy; no secret and no control character reaches a reader."""

from __future__ import annotations

import difflib
import errno
import os
import re

# What a system says, by number or in the words of a library that wraps it -> what it is, what to do.
_SYSTEM: tuple[tuple[tuple[int, ...], tuple[str, ...], tuple[str, str]], ...] = (
    (
        (errno.ENOMEM,),
        ("out of memory", "allocate memory", "failed to map segment", "bad_alloc"),
        ("memory ran out", "use fewer execute.workers or a smaller train.step_tokens"),
    ),
    (
        (errno.EAGAIN,),
        ("can't start new thread",),
        (
            "the system starts no more threads or processes",
            "use fewer execute.workers, or raise `ulimit -u` or `ulimit -v`",
        ),
    ),
    (
        (errno.ENOSPC, errno.EDQUOT),
        (),
        ("the disk is full", "make room, for instance by `repro store gc`"),
    ),
    (
        (errno.EFBIG,),
        (),
        ("a file grew over the limit of this shell or file system", "raise `ulimit -f`"),
    ),
    (
        (errno.EROFS,),
        (),
        ("the file system may only be read", "name another folder in REPRO_HOME"),
    ),
)
SECRETS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "REPRO_ENDPOINT_KEY")  # read from the environment
_SECRET = re.compile(r"(?<=://)[^/\s@]+(?=@)|\bhf_\w{16,}|(?<=\bBearer )[^\s\"']+")


class UserError(ValueError):
    """A fault in what the user gave: `where` it was found, `what` it is, and the `remedy`.

    The command line prints it on one screen and exits with code 2.
    """

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        super().__init__(what)
        self.what, self.where, self.remedy = what, where, remedy

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        told = f"{place}{self.what}" + (f"\n  remedy: {self.remedy}" if self.remedy else "")
        return printable(told)


def hidden(text: str) -> str:
    """`text` without secrets: what stands before the @ of an address, tokens, and keys of this process."""
    text = _SECRET.sub("***", text)
    for name in SECRETS:
        if len(value := os.environ.get(name, "")) > 3:
            text = text.replace(value, "***")
    return text


def printable(text: str) -> str:
    """`text` without secrets; what would steer a terminal or is no character is written as an escape."""
    text = hidden(text)
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each == "\n" else each.encode("unicode_escape").decode()
        for each in text
    )


def nearest(name: str, allowed: list[str]) -> str:
    """`did you mean X?`, or the list of what is allowed."""
    near = difflib.get_close_matches(name, allowed, n=1, cutoff=0.6)
    return f"did you mean `{near[0]}`?" if near else f"allowed: {', '.join(sorted(allowed))}"


def of_machine(fault: BaseException) -> tuple[str, str] | None:
    """What it is, and the remedy, where memory, the disk or a limit of the system is at fault."""
    plain, number = str(fault).lower(), getattr(fault, "errno", None)
    for numbers, words, told in _SYSTEM:
        said = (*words, *(os.strerror(each).lower() for each in numbers))
        if number in numbers or any(each in plain for each in said):
            return told
    return _SYSTEM[0][2] if isinstance(fault, MemoryError) else None
