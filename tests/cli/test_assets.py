"""The browser's files come from pinned packages only, and fit the libraries that they go with."""

from __future__ import annotations

import base64
import hashlib
import io
import re
import tarfile
from pathlib import Path

import pytest

from dashboard.cli import assets


def test_every_pinned_file_is_installed_and_not_empty() -> None:
    for package in assets.packages():
        for target in package.targets:
            assert target.stat().st_size > 0, target


def test_a_second_install_has_nothing_to_do() -> None:
    assert assets.install() is False


def test_every_pin_is_an_exact_version_with_an_integrity() -> None:
    for package in assets.packages():
        assert re.fullmatch(r"\d+\.\d+\.\d+", package.version), package.name
        assert len(base64.b64decode(package.integrity.removeprefix("sha512-"), validate=True)) == 64, package.name


def test_the_chart_library_is_the_one_that_plotly_py_writes_for() -> None:
    (pinned,) = [package for package in assets.packages() if package.name == "plotly.js-basic-dist-min"]
    assert pinned.version == assets.plotly_js_version()
    assert f"plotly.js (basic - minified) v{pinned.version}" in pinned.targets[0].read_text()[:400]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "thing-1.0.0.tgz"
    with tarfile.open(path, "w:gz") as packed:
        for name, content in (("package/dist/thing.js", b"ok"), ("package/other.js", b"unwanted")):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            packed.addfile(entry, io.BytesIO(content))
    return path


def pinned(archive: Path, *, files: tuple[str, ...], integrity: str | None = None) -> assets.Package:
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    return assets.Package("thing", "1.0.0", integrity or f"sha512-{digest}", "dist", archive.parent / "into", files)


def test_only_the_listed_files_are_taken_out(archive: Path) -> None:
    package = pinned(archive, files=("thing.js",))
    assets.check_integrity(package, archive)
    assets.unpack(package, archive)
    assert [path.name for path in package.into.rglob("*")] == ["thing.js"]


def test_a_package_that_is_not_what_was_pinned_is_refused(archive: Path) -> None:
    with pytest.raises(assets.AssetsError, match=r"thing 1\.0\.0 is not what vendor\.json pins"):
        assets.check_integrity(pinned(archive, files=("thing.js",), integrity="sha512-" + "A" * 88), archive)


def test_a_file_that_the_package_does_not_have_is_named(archive: Path) -> None:
    with pytest.raises(assets.AssetsError, match=r"thing 1\.0\.0 has no file dist/none\.js"):
        assets.unpack(pinned(archive, files=("none.js",)), archive)
