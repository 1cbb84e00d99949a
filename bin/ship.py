"""Pack the package with its compiled kernels for the workers of a cluster: one archive per content.

This script uses the standard library only, because it runs before every job on a cluster:
``.venv/bin/python bin/ship.py .cache/ship`` prints the archive's path.
"""

from __future__ import annotations

import argparse
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
CACHE = PACKAGE.parents[1] / ".cache" / "numba"
"""Where jobs of this machine keep compiled kernels: what one of them has compiled is not compiled again."""

FILE_TIME = 315532800
"""The time of every file in the archive, 1980-01-01: a compiled module names the time of its source."""


def make_archive(folder: Path) -> Path:
    """Return the archive of this content; make it now if it is missing.

    Parameters
    ----------
    folder : the folder of the archives; it is created if it is missing.

    Raises
    ------
    CalledProcessError
        The kernels could not be compiled; stderr shows what the compiler printed.

    Notes
    -----
    This takes 20 ms if the archive is there, else up to a minute. Two jobs at once each make it; the last one
    stays.
    """
    made = folder / f"epsjoin-{digest_content()}.tar.gz"
    if made.exists():
        return made
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix="making-") as scratch:
        package = Path(scratch, PACKAGE.name)
        shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
        print("compiling the kernels, once: this takes up to a minute", file=sys.stderr, flush=True)
        for file in package.rglob("*"):
            os.utime(file, (FILE_TIME, FILE_TIME))
        compile_kernels(package)
        part = Path(scratch, "archive")
        pack(package, part)
        part.replace(made)
    return made


def digest_content() -> str:
    """Digest all that the archive depends on: sources, Python, the libraries of the kernels, processor."""
    digest = hashlib.sha256(Path(__file__).read_bytes())  # another way to pack makes another archive
    for file in sorted(list_sources()):
        digest.update(f"{file.relative_to(PACKAGE)}\0".encode() + file.read_bytes())
    libraries = Path(sys.prefix).glob("lib/python3*/site-packages/*.dist-info")
    kernels = [path.name for path in libraries if path.name.startswith(("numba-", "numpy-", "llvmlite-"))]
    digest.update(repr((sys.version, sorted(kernels), describe_processor())).encode())
    return digest.hexdigest()[:16]


def list_sources() -> Iterator[Path]:
    """List the files of the package, without those that Python or numba made of them."""
    return (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def describe_processor() -> tuple[str, ...]:
    """Describe the processor that numba compiles for; another one compiles again, which takes a minute."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return (platform.machine(), platform.processor())
    named = [line for line in lines if line.startswith(("model name", "flags", "CPU part", "Features"))]
    return (platform.machine(), *sorted(set(named)))


def compile_kernels(package: Path) -> None:
    """Compile the kernels that this machine has not compiled yet, and copy all into a copy of the package."""
    prefix = os.environ.get("PYTHONPYCACHEPREFIX", "")  # of libraries, too, which others have compiled there
    own = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "PYTHON"))}
    own |= {"PYTHONPYCACHEPREFIX": prefix} if prefix else {}
    own |= {"NUMBA_CACHE_DIR": str(CACHE), "PYTHONPATH": str(package.parent), "OMP_NUM_THREADS": "1"}
    subprocess.run(
        [sys.executable, "-m", f"{PACKAGE.name}.spark.startup.warm", package],
        cwd=package.parent,
        env=own,
        stdout=sys.stderr,
        check=True,
    )
    if prefix:
        gather_bytecode(Path(package.parent, prefix, *package.parts[1:]), package)


def gather_bytecode(kept: Path, package: Path) -> None:
    """Move what Python has compiled of a package beside the sources, where a worker's Python looks for it."""
    for file in kept.rglob("*.pyc"):
        place = package / file.parent.relative_to(kept) / "__pycache__"
        place.mkdir(exist_ok=True)
        shutil.move(file, place)
    shutil.rmtree(kept.parent, ignore_errors=True)


def pack(package: Path, file: Path) -> None:
    """Write a folder as a tar.gz whose bytes depend on names and contents alone."""
    with (
        file.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0, compresslevel=6) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as tar,
    ):
        for path in sorted(package.rglob("*")):
            member = tar.gettarinfo(path, str(path.relative_to(package.parent)))
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mtime = FILE_TIME
            if path.is_file():
                with path.open("rb") as opened:
                    tar.addfile(member, opened)
            else:
                tar.addfile(member)


def main(argv: Sequence[str]) -> int:
    """Print the path of the archive in the folder that the only argument names."""
    parser = argparse.ArgumentParser(prog="ship.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="folder of the archives; it is made if it is missing")
    print(make_archive(parser.parse_args(argv).folder.resolve()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
