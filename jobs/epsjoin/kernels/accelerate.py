"""The one switch for compiling kernels: every kernel is decorated with :func:`njit` from here.

Compiled kernels are kept on disk by numba's cache, in a folder of their own. No setting of numba is changed
for that: it would also move the compiled functions of every other package in the process.
"""

from __future__ import annotations

import hashlib
import inspect
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, InTreeCacheLocator
from numba.core.runtime.nrt import rtsys
from numba.extending import intrinsic
from numba.misc.appdirs import AppDirs
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])
A = TypeVar("A", bound=NDArray[np.generic])
N = TypeVar("N", bound=tuple[Any, ...])

config: Any = numba.config

KEPT = 8
"""Number of folders of compiled kernels that are kept side by side: those that were used last."""


def digest_sources(kernels: Path) -> str:
    """Digest what compiled kernels depend on: all sources in a folder and below it, numba and NumPy.

    numba's own cache checks the file of a function, not those of the functions that it calls: after a change
    in one file it would run old code from another.
    """
    digest = hashlib.sha256(f"{numba.__version__}\0{np.__version__}\0".encode())
    for source in sorted(kernels.rglob("*.py")):
        digest.update(f"{source.relative_to(kernels)}\0".encode() + source.read_bytes())
    return digest.hexdigest()[:16]


def open_folder(digest: str, bases: Iterable[Path]) -> Path | None:
    """Make the folder of the kernels that were compiled from exactly these sources.

    Parameters
    ----------
    digest : of the sources.
    bases : folders in which it may lie, the best first; the first that can be written is taken. Of the
        folders of other sources in it, those that were used last are kept.

    Returns
    -------
    Path | None
        None where no base can be written.

    Notes
    -----
    A process may lose its folder to another one: it makes the folder again when it has compiled something.
    """
    for base in bases:
        folder = base / f"kernels-{digest}"
        try:
            is_new = not folder.is_dir()
            folder.mkdir(parents=True, exist_ok=True)
            # by trying, as permissions do not tell whether a disk can be written
            tempfile.TemporaryFile(dir=folder).close()
            folder.touch()  # its time is that of its last use
        except OSError:
            continue
        if is_new:
            _remove_unused(base)
        return folder
    return None


def _remove_unused(base: Path) -> None:
    folders = sorted(base.glob(f"kernels-{'[0-9a-f]' * 16}"), key=_last_use, reverse=True)
    for folder in folders[KEPT:]:
        shutil.rmtree(folder, ignore_errors=True)


def _last_use(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:  # another process has removed it
        return 0.0


def _bases(kernels: Path) -> Iterator[Path]:
    """List where compiled kernels may lie: in NUMBA_CACHE_DIR, beside the sources, in the user's cache."""
    if config.CACHE_DIR:
        yield Path(config.CACHE_DIR)
    yield kernels / "__pycache__"
    own = Path(AppDirs("epsjoin", appauthor=False).user_cache_dir)
    if own.is_absolute():  # it is relative for a user without a home
        yield own


class _Locator(InTreeCacheLocator):
    """Where numba keeps the kernels of a file: in the folder of exactly these sources, wherever these lie."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        super().__init__(function, file)
        self._cache_path = str(Path(_FOLDER or "", Path(file).parent.relative_to(_KERNELS)))


class _Files(IndexDataCacheFile):
    """numba's files of a kernel; each says which types it was compiled for, and is loaded only for these.

    numba numbers the files. Two processes that compile a kernel for different types at the same time may give
    both files one number, so that the index leads to the code for the other types.
    """

    def save(self, key: Any, data: Any) -> None:
        super().save(key, (key, data))

    def load(self, key: Any) -> Any:
        found = super().load(key)
        return found[1] if found is not None and found[0] == key else None


class _Place(CompileResultCacheImpl):
    _locator_classes = [_Locator]  # noqa: RUF012  # numba's form; NUMBA_CACHE_LOCATOR_CLASSES names others


class _Cache(FunctionCache):
    _impl_class = _Place

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, DIGEST)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a kernel without the preparations of a compilation, which numba makes before each load.

        They are made only when a kernel is compiled.
        """
        rtsys.initialize(target_context)  # the memory of arrays: kernels are linked with it
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


_KERNELS = Path(__file__).parent
DIGEST = digest_sources(_KERNELS)
"""What all kernels of this process were compiled from."""
_IS_KEPT = not config.DISABLE_JIT and _KERNELS.is_dir()  # in a zip file there is no source to go by
_FOLDER = None
if _IS_KEPT and not config.CACHE_LOCATOR_CLASSES:
    _FOLDER = open_folder(DIGEST, _bases(_KERNELS))
    _IS_KEPT = _FOLDER is not None
    if not _IS_KEPT:
        warnings.warn(
            "epsjoin: every process compiles the kernels anew, which takes some time; no folder for them can "
            f"be written ({', '.join(map(str, _bases(_KERNELS)))}): set NUMBA_CACHE_DIR to one that can be",
            RuntimeWarning,
            stacklevel=2,
        )


_ALL: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True}
"""How numba compiles every kernel: without a way in for callers in C, which would be an eighth of the CPU."""
_PART = {"_nrt": False, "forceinline": True}
"""How numba compiles what is a part of other kernels: without its runtime, and into them."""


def njit(function: F) -> F:
    """Compile ``function`` with numba, cached on disk, without the GIL.

    No ``fastmath``: it may reorder sums, and a pair at exactly eps must not depend on that.
    ``NUMBA_DISABLE_JIT=1`` runs the same functions as plain Python, for bounds checks and coverage.
    """
    return _compile(function)


def njit_inner(function: F) -> F:
    """As :func:`njit`, for a part of other kernels' innermost loops: it is inlined into each of them.

    A call hands over some seven words for each array, which costs more than a short function does. Nor are
    references to its arrays counted: where a function has branches, numba would count them in each call, and
    threads would wait for one another as they count. Such a function may make no array: numba refuses to
    compile one that does.
    """
    return _compile(function, **_PART)


def njit_any_order(function: F) -> F:
    """As :func:`njit`, but sums may run in any order, so that they are made side by side.

    A multiplication and an addition may also be rounded together (FMA). This is only for filters, whose slack
    covers every order and either rounding, never for a decision or for a number that is reported.
    """
    return _compile(function, fastmath={"contract", "reassoc"})


def njit_inner_any_order(function: F) -> F:
    """As :func:`njit_any_order` and :func:`njit_inner`."""
    return _compile(function, fastmath={"contract", "reassoc"}, **_PART)


def njit_as(write: Callable[..., Any]) -> Callable[[F], F]:
    """Compile calls of a function as instructions of LLVM; the function itself does the same in Python.

    Parameters
    ----------
    write : writes the instructions by LLVM's builder, its first argument, and returns the result, an int64.
        Its other arguments are those of the function: an address for an array, an int64 for a whole number.

    Notes
    -----
    The function itself runs with ``NUMBA_DISABLE_JIT=1``. Kernels call it by a name of their module: a
    variable of an enclosing function would be part of what numba's cache goes by, and new in each process.
    """

    def define(_: Any, *arguments: Any) -> tuple[Any, Callable[..., Any]]:
        given = [types.int64 if isinstance(one, types.Integer) else one for one in arguments]

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            arrays = [kind for kind in signature.args if isinstance(kind, types.Array)]
            written = [
                context.make_array(kind)(context, builder, value).data if kind in arrays else value
                for kind, value in zip(signature.args, values, strict=True)
            ]
            return write(builder, *written)

        return types.int64(*given), generate

    def decorate(function: F) -> F:
        if config.DISABLE_JIT:
            return function
        parameters = inspect.signature(function).parameters.values()
        own = inspect.Parameter("_", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        define.__signature__ = inspect.Signature([own, *parameters])  # type: ignore[attr-defined]  # any function has one
        return cast("F", intrinsic(define))

    return decorate


def _compile(function: F, **options: Any) -> F:
    compiled = numba.njit(**_ALL, **options)(function)
    if _IS_KEPT:
        compiled._cache = _Cache(function)  # as cache=True does with numba's own
    return cast("F", compiled)


def read_only(array: A) -> A:
    """Make a view that cannot be written, for an array that a kernel only reads.

    numba compiles a kernel once for such views and once more for arrays that can be written. Columns of Arrow
    are of the first kind, so functions that tasks share with other callers use such views: executors need not
    compile anything.
    """
    view = array.view()
    # the argument is "write"; by its name, as NumPy's stubs want it, this takes twice as long
    view.setflags(False)  # type: ignore[call-arg]
    return view


def plain(named: N) -> N:
    """Make a plain tuple of a named one, for a kernel that gives its parts their names again.

    numba takes more than half a microsecond to find out the type of a named tuple, and a tenth of that for a
    plain one. A whole join of few rows takes ten.
    """
    return cast("N", tuple(named))
