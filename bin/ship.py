"""The package as a cluster's workers get it: an archive with its compiled kernels, made once per content.

Knows the standard library only, because it runs before every job that goes to a cluster:
``.venv/bin/python bin/ship.py .cache/ship`` prints the archive's path.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "jobs" / "epsjoin"
LOCATOR = {"NUMBA_CACHE_LOCATOR_CLASSES": "InTreeCacheLocator"}
"""Makes numba look for compiled kernels beside their sources, wherever those lie."""

STAMP = 315532800
"""Time of every file in the archive, 1980-01-01: a compiled module names the time of its source."""


def archive(folder: Path) -> Path:
    """Give the archive of this content, made now if it is not there.

    Parameters
    ----------
    folder : where the archives lie; made if missing.

    Raises
    ------
    CalledProcessError
        The kernels could not be compiled; the compiler's words stand on stderr.

    Notes
    -----
    20 ms if it is there, else about a minute. Two jobs at once each make it; the files are alike, and the
    last one stays.
    """
    made = folder / f"epsjoin-{content()}.tar.gz"
    if made.exists():
        return made
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix="making-") as scratch:
        package = Path(scratch, PACKAGE.name)
        shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
        for file in package.rglob("*"):
            os.utime(file, (STAMP, STAMP))
        compile_in(package)
        part = Path(scratch, "archive")
        pack(package, part)
        part.replace(made)
    return made


def content() -> str:
    """Digest of all that the archive depends on: sources, Python, the libraries of the kernels, processor."""
    digest = hashlib.sha256(Path(__file__).read_bytes())  # another way to pack makes another archive
    for file in sorted(sources()):
        digest.update(f"{file.relative_to(PACKAGE)}\0".encode() + file.read_bytes())
    libraries = Path(sys.prefix).glob("lib/python3*/site-packages/*.dist-info")
    kernels = [path.name for path in libraries if path.name.startswith(("numba-", "numpy-", "llvmlite-"))]
    digest.update(repr((sys.version, sorted(kernels), processor())).encode())
    return digest.hexdigest()[:16]


def sources() -> Iterator[Path]:
    """Files of the package, without what Python or numba made of them."""
    return (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def processor() -> tuple[str, ...]:
    """What numba compiles for; another processor compiles the kernels again, which costs it a minute."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return (platform.machine(), platform.processor())
    named = [line for line in lines if line.startswith(("model name", "flags", "CPU part", "Features"))]
    return (platform.machine(), *sorted(set(named)))


def compile_in(package: Path) -> None:
    """Compile the kernels of a copy of the package, into the copy."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "PYTHON"))}
    subprocess.run(  # noqa: S603 - our own module
        [sys.executable, "-m", f"{PACKAGE.name}.spark.warm"],
        cwd=package.parent,
        env=own | LOCATOR | {"PYTHONPATH": str(package.parent), "OMP_NUM_THREADS": "1"},
        stdout=sys.stderr,
        check=True,
    )


def pack(package: Path, file: Path) -> None:
    """Write a folder as a tar.gz that depends on nothing but names and contents."""
    with (
        file.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0, compresslevel=6) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as tar,
    ):
        for path in sorted(package.rglob("*")):
            member = tar.gettarinfo(path, str(path.relative_to(package.parent)))
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mtime = STAMP
            if path.is_file():
                with path.open("rb") as content_:
                    tar.addfile(member, content_)
            else:
                tar.addfile(member)


def main(argv: Sequence[str]) -> int:
    """Print the path of the archive in the folder that is the only argument."""
    print(archive(Path(argv[0]).resolve()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
