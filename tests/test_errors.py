"""What the machine is at fault for is told by the number or the words of the system."""

from __future__ import annotations

import errno
import os

import pytest

from repro.errors import of_machine


@pytest.mark.parametrize(
    ("fault", "remedy"),
    [
        (OSError(errno.ENOSPC, "4096 requested and 0 written"), "make room"),
        (RuntimeError(f"a library: {os.strerror(errno.ENOSPC)} (os error 28)"), "make room"),
        (OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)), "make room"),
        (OSError(errno.EFBIG, os.strerror(errno.EFBIG)), "raise `ulimit -f`"),
        (OSError(errno.EROFS, "x"), "name another folder in REPRO_HOME"),
        (MemoryError(), "use fewer execute.workers"),
        (OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)), "use fewer execute.workers"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "use fewer execute.workers"),
        (
            ImportError("x.so: failed to map segment from shared object"),
            "use fewer execute.workers",
        ),
        (RuntimeError("can't start new thread"), "use fewer execute.workers, or raise `ulimit -u`"),
        (BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)), "use fewer execute.workers, or"),
        (RuntimeError("std::bad_alloc"), "use fewer execute.workers"),
    ],
)
def test_the_machine_is_at_fault(fault: Exception, remedy: str) -> None:
    found = of_machine(fault)
    assert found is not None
    assert found[1].startswith(remedy)


@pytest.mark.parametrize("fault", [OSError(errno.ENOENT, "x"), ValueError("28"), OSError("x")])
def test_other_faults_are_not_the_machines(fault: Exception) -> None:
    assert of_machine(fault) is None
