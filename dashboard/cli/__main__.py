"""``python -m dashboard.cli`` is ``sendonce``."""

from dashboard.cli import main

main()
