"""Free memory that a virtual machine has given back to its host, and what touching it again costs.

A host may take back huge pages that have been free for some seconds ("free page reporting" of virtio).
Whoever touches them next waits for the host, in time that counts as his own. Arrays of 4 MB and more lie in
such pages, since NumPy asks for them: a contender that comes after a long one, during which memory lay free,
would pay more than another for the same work. On a machine without a host, none would.
``python -m benchmarks.free_memory`` shows what it is here.
"""

from __future__ import annotations

import mmap
import resource
import time
from pathlib import Path

ROOM = 1 << 30
"""Bytes that are taken back before a call; no contender on arrays touches more."""
_HUGE_PAGE = 2 << 20


def take_back(n_bytes: int = ROOM) -> None:
    """Touch that much memory in huge pages and free it: what is touched next is then at hand (Linux)."""
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return
    with mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        for start in range(0, n_bytes, _HUGE_PAGE):
            memory[start] = 1


def take_back_free(most: int) -> None:
    """Take back at most so many bytes, of what is free alone: no bytes of files must go for it (Linux)."""
    of_machine = Path("/proc/meminfo")
    if of_machine.is_file():
        free_kib = next(line.split()[1] for line in of_machine.open() if line.startswith("MemFree"))
        take_back(min(most, int(free_kib) * 1024 * 9 // 10) // _HUGE_PAGE * _HUGE_PAGE)


def main() -> None:
    print("System's seconds to touch 100 MB in huge pages")
    for idle in (0, 0, 5, 0, 20, 0):
        time.sleep(idle)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_stime
        take_back(100_000_000)
        spent = resource.getrusage(resource.RUSAGE_SELF).ru_stime - before
        print(f"{idle:2} s after it was freed: {spent:.3f}")


if __name__ == "__main__":
    main()
