"""Wheels of the project and of the installed packages it depends on, to install them without a network."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, PathDistribution, distribution
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile
from zipfile import Path as ZipPath

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).parent.parent


def build_wheel(folder: Path) -> Path:
    """Build a wheel of the checkout. Skip the test if the build backend is not installed."""
    pytest.importorskip("flit_core", reason="flit_core, which builds the wheel, is not installed")
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--quiet", "--wheel-dir", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(REPOSITORY)], check=True, timeout=300)
    (wheel,) = folder.glob("backscroll-*.whl")
    return wheel


def write_wheelhouse(folder: Path, wheel: Path, requirement: str) -> None:
    """Write a wheel for every installed package that a requirement on the project's wheel needs."""
    shutil.copy(wheel, folder)
    for package in _dependencies(wheel, Requirement(requirement)):
        _pack(package, folder)


def _dependencies(wheel: Path, requirement: Requirement) -> Iterator[Distribution]:
    """Yield the packages that a requirement on the wheel needs, directly or not."""
    name, version, *_ = wheel.name.split("-")
    own = PathDistribution(ZipPath(wheel, f"{name}-{version}.dist-info/"))
    seen: set[tuple[str, str]] = set()  # name and extra
    packed = {name}
    waiting = [requirement]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        new = {(name, extra) for extra in ("", *requirement.extras)} - seen
        if not new:
            continue
        seen |= new
        package = own if name == own.name else _installed(name)
        for text in package.requires or ():
            needed = Requirement(text)
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for _, extra in new):
                waiting.append(needed)
        if name not in packed:
            packed.add(name)
            yield package


def _installed(name: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError:
        pytest.skip(f"{name}, which the project depends on, is not installed")


def _pack(package: Distribution, folder: Path) -> None:
    """Write the files of an installed package as a wheel."""
    metadata = package.read_text("WHEEL") or ""
    tags = [line.partition(":")[2].strip() for line in metadata.splitlines() if line.startswith("Tag:")]
    name = canonicalize_name(package.metadata["Name"]).replace("-", "_")
    info = f"{name}-{package.version}.dist-info"
    with ZipFile(folder / f"{name}-{package.version}-{_joined(tags)}.whl", "w", ZIP_STORED) as wheel:
        names = []
        for file in package.files or ():
            # Scripts are outside of the package; installing the wheel writes them again.
            if file.parts[0] == ".." or file.name in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json"):
                continue
            if "__pycache__" in file.parts or not Path(str(file.locate())).is_file():
                continue
            is_info = file.parts[0].endswith(".dist-info")
            inside = "/".join([info, *file.parts[1:]]) if is_info else file.as_posix()
            wheel.write(str(file.locate()), inside)
            names.append(inside)
        record = "".join(f"{inside},,\n" for inside in [*names, f"{info}/RECORD"])
        wheel.writestr(f"{info}/RECORD", record)


def _joined(tags: list[str]) -> str:
    """Return the compressed form of tags, as in a file name: ``py2.py3-none-any``."""
    parts = zip(*(tag.split("-") for tag in tags), strict=True)
    return "-".join(".".join(dict.fromkeys(part)) for part in parts)
