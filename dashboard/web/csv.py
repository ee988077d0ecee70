"""Lines of CSV that no spreadsheet takes for formulas."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable


def safe_cell(value: object) -> str:
    """A cell that no spreadsheet takes for a formula: a quote goes before what would start one."""
    text = "" if value is None else str(value)
    return f"'{text}" if text.lstrip()[:1] in ("=", "+", "-", "@") or text[:1] in ("\t", "\r", "\n") else text


def csv_line(cells: Iterable[object]) -> str:
    """One line of the file."""
    buffer = io.StringIO()
    csv.writer(buffer).writerow([safe_cell(cell) for cell in cells])
    return buffer.getvalue()
