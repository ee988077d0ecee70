"""A worker that is frozen past its lease and woken again, and workers whose clocks are wrong."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.crew import until
from tests.flow.town import Town
from tests.survival.ending import nothing_lost_nothing_twice, wait_for_rest

SENDS = 8
KEYS = [f"order:{i}" for i in range(SENDS)]
HERE = Path(__file__).parent
DAY = 86_400


def freeze_at(town: Town, step: str) -> subprocess.Popen[bytes]:
    """A worker that stands still at this step, as under SIGSTOP, with all that it holds: all sends, in its one lane."""
    worker = town.worker(hasty=True, program=(str(HERE / "doomed.py"),), SENDONCE_FREEZES_AT=step, SENDONCE_LANES="1")
    state = Path(f"/proc/{worker.pid}/stat")
    until(lambda: state.read_text().rpartition(")")[2].split()[0] == "T", what="the frozen worker")
    return worker


def statuses(town: Town) -> dict[tuple[str, ...], int]:
    """How many sends have had which attempts."""
    rows = town.place.all("select array_agg(status::text order by n) as all from sendonce.attempts group by send_id")
    found = [tuple(row["all"]) for row in rows]
    return {each: found.count(each) for each in found}


def test_frozen_with_claims_it_starts_nothing_when_it_wakes(town: Town) -> None:
    sends = town.enqueue(KEYS)
    frozen = freeze_at(town, "after claim")
    other = town.worker(hasty=True)
    assert wait_for_rest(town) == {"accepted": SENDS}, "the other has waited for the lease, and sent them"
    frozen.send_signal(signal.SIGCONT)
    _stop(town, frozen)
    nothing_lost_nothing_twice(town, sends)
    assert statuses(town) == {("accepted",): SENDS}
    assert town.place.one("select count(distinct worker) as n from sendonce.attempts") == {"n": 1}
    _stop(town, other)


@pytest.mark.parametrize("step", ["after start", "before submit"])
def test_frozen_before_its_first_byte_it_writes_none_when_it_wakes(town: Town, step: str) -> None:
    sends = town.enqueue(KEYS)
    frozen = freeze_at(town, step)
    other = town.worker(hasty=True)
    assert wait_for_rest(town) == {"held": SENDS}, "for the others they may have left"
    _stop(town, other)
    assert town.simulator.books == []
    frozen.send_signal(signal.SIGCONT)
    # It says that nothing was written, which ends the doubt; so each is claimed anew, and sent once.
    until(lambda: town.states() == {"accepted": SENDS}, what="every send")
    nothing_lost_nothing_twice(town, sends)
    assert statuses(town) == {("abandoned", "accepted"): SENDS}


def test_frozen_with_an_answer_it_tells_it_when_it_wakes(town: Town) -> None:
    sends = town.enqueue(KEYS[:1])
    frozen = freeze_at(town, "after submit")
    other = town.worker(hasty=True)
    assert wait_for_rest(town) == {"held": 1}
    _stop(town, other)
    frozen.send_signal(signal.SIGCONT)
    until(lambda: town.states() == {"accepted": 1}, what="the late answer")
    nothing_lost_nothing_twice(town, sends)
    assert statuses(town) == {("accepted",): 1}


def test_wrong_wall_clocks_change_nothing(town: Town) -> None:
    for wrong in (DAY, -DAY, 40 * 365 * DAY):
        town.worker(program=(str(HERE / "astray.py"),), SENDONCE_ASTRAY=str(wrong), SENDONCE_IN_FLIGHT="20")
    until(lambda: town.place.count("workers") == 3)
    sends = town.enqueue([f"order:{i}" for i in range(300)])
    assert wait_for_rest(town) == {"accepted": 300}
    nothing_lost_nothing_twice(town, sends)
    assert statuses(town) == {("accepted",): 300}, "no lease ended early, no deadline late"
    assert town.place.count("moves") == 0
    astray = town.place.one(
        "select count(*) as n from sendonce.sends"
        " where settled_at not between recorded_at and now() or recorded_at < now() - interval '10 minutes'"
    )
    assert astray == {"n": 0}, "every time on record is the database's"
    started = [line for line in town.log.read_text().splitlines() if "worker_started" in line]
    days = {json.loads(line)["timestamp"][:10] for line in started}
    assert len(days) == 3, "and their clocks were wrong indeed"


def _stop(town: Town, worker: subprocess.Popen[bytes]) -> None:
    """Politely, and until it is gone."""
    worker.terminate()
    assert worker.wait(60) == 0, town.log.read_text()[-3000:]
