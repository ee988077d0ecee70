"""The named degrees of misbehaviour, as changes to a `Config`."""

from __future__ import annotations

from typing import Any

PRESETS: dict[str, dict[str, Any]] = {
    "none": {},
    "light": {
        "http": {
            "accept_then_timeout": 0.004,
            "reset_after": 0.006,
            "reset_before": 0.006,
            "http_500_taken": 0.004,
            "http_500_not_taken": 0.006,
            "http_429": 0.01,
            "slow": 0.01,
            "garbage": 0.002,
        },
        "smtp": {
            "accept_then_timeout": 0.004,
            "drop_after_dot_taken": 0.006,
            "drop_after_dot_not_taken": 0.006,
            "reply_451": 0.01,
            "reply_421": 0.006,
            "slow": 0.01,
            "garbage": 0.002,
        },
        "fates": {"bounce": 0.01, "complain": 0.002, "delay": 0.02, "quiet": 0.01},
        "webhooks": {"delay_ms": 150.0, "repeat": 0.05, "other_id": 0.01, "out_of_order": 0.1, "overtake": 0.02},
    },
    "heavy": {
        "http": {
            "accept_then_timeout": 0.02,
            "reset_after": 0.04,
            "reset_before": 0.04,
            "http_500_taken": 0.03,
            "http_500_not_taken": 0.04,
            "http_429": 0.06,
            "slow": 0.05,
            "garbage": 0.02,
        },
        "smtp": {
            "accept_then_timeout": 0.02,
            "drop_after_dot_taken": 0.04,
            "drop_after_dot_not_taken": 0.04,
            "reply_451": 0.06,
            "reply_421": 0.04,
            "slow": 0.05,
            "garbage": 0.02,
        },
        "fates": {"bounce": 0.05, "softbounce": 0.03, "complain": 0.02, "delay": 0.1, "suppressed": 0.02, "quiet": 0.1},
        "webhooks": {"delay_ms": 400.0, "repeat": 0.25, "other_id": 0.1, "out_of_order": 0.4, "overtake": 0.1},
    },
}
