"""A webhook that takes Slack's messages, as Slack, Mattermost, Rocket.Chat and others do."""

from __future__ import annotations

import json

from dashboard.channels import News, Outcome
from dashboard.channels.post import post


def send(news: News, *, url: str, private: bool) -> Outcome:
    """Tell it. What came from people is escaped, so that nothing of it becomes a link or calls a channel together."""
    told = "\n".join([f"*{_escaped(news.headline)}*", *map(_escaped, news.lines), f"<{news.link}|Open it>"])
    body = json.dumps({"text": told}).encode()
    return post(url, body=body, headers={"Content-Type": "application/json"}, private=private)


def _escaped(text: str) -> str:
    """Slack's three characters, and the two that begin and end bold text here."""
    for character, instead in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("*", "∗"), ("\n", " ")):
        text = text.replace(character, instead)
    return text
