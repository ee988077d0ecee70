"""``python -m dashboard.simulator``: the command `sendonce simulator`, without the rest of the command line."""

from dashboard.simulator.command import simulator

simulator(prog_name="python -m dashboard.simulator")
