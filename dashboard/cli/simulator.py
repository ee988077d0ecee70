"""``sendonce simulator``. The command lives beside the simulator, which also runs alone."""

from dashboard.simulator.command import simulator

__all__ = ["simulator"]
