"""Text that would like to be a page: S32."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from uuid import UUID

import pytest

from dashboard.ledger import access
from dashboard.ledger.tables import Role
from dashboard.settings import Settings
from dashboard.web import create_app
from tests.crew import graces_end
from tests.flow.town import SECRET
from tests.place import KEYS
from tests.scenarios.scene import Scene, event, request
from tests.web.conftest import PASSWORD, Browser

SUBJECT = "<img src=x onerror=alert(1)>"
NAME = '"><script>alert(2)</script>'
REASON = "</td></tr><script>alert(3)</script>"
NOTE = "{{7*7}}"


@dataclass
class Page(HTMLParser):
    """What a browser makes of a page: its elements, what in them would run, and the text that people see."""

    html: str
    ran: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    inside: str = ""

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        self.inside = tag
        given = dict(attrs)
        if tag == "img" or any(name.startswith("on") for name in given) or (tag == "script" and "src" not in given):
            self.ran.append(f"{tag} {given}")

    def handle_endtag(self, tag: str) -> None:
        """It ends."""
        self.inside = ""

    def handle_data(self, data: str) -> None:
        """Text, which is code inside a script."""
        if self.inside == "script" and data.strip():
            self.ran.append(data)
        else:
            self.words.append(data)

    @property
    def text(self) -> str:
        """All text, without what helps it to break."""
        return "".join(self.words).replace("\u200b", "")


@pytest.fixture
def ana(scene: Scene) -> Browser:
    """An operator, who may see every page that an agent sees, and the held sends."""
    with scene.place.database.transaction() as connection:
        person = access.add_person(connection, login="ana", name="Ana", password=PASSWORD)
        access.put_role(connection, user_id=person, workspace_id=scene.place.workspace, role=Role.OPERATOR)
    settings = Settings(database_url=scene.place.database.url, secret_key=SECRET, encryption_keys=KEYS)
    browser = Browser(create_app(settings, scene.place.database, scene.place.vault).test_client())
    assert browser.log_in("ana").status_code == 303
    return browser


def test_S32_hostile_text_in_every_field(scene: Scene, ana: Browser) -> None:
    """In more fields than told: also in the key, the recipient's id, the trigger and the message.

    The search by exact subject does not exist yet: it finds nothing, and its page quotes what was typed. The search
    that hits once is the one for the recipient's id, which is as hostile.
    """
    account = scene.mailstream(policy="hold", keys=False, title=NOTE, owner=NOTE)
    send = _a_hostile_send(scene)
    told = event("bounced", "PM-1", send=send, bounce={"type": "Permanent", "message": REASON})
    held = _held_as_well(scene)
    assert scene.tell(account, told).kind == "2xx"
    pages = {
        "the list": (ana.get("/sends").text, [NAME]),
        "its rows alone": (ana.get("/sends", htmx=True).text, [NAME]),
        "the trace": (ana.get(f"/sends/{send}").text, [NAME, REASON, NOTE]),
        "the trace alone": (ana.get(f"/sends/{send}", htmx=True).text, [NAME, REASON]),
        "the message": (ana.get(f"/sends/{send}/message").text, [SUBJECT, REASON]),
        "the held sends": (ana.get("/held").text, [NAME]),
        "the hold page": (ana.get(f"/held/{held}").text, [NAME]),
        "a search without a hit": (_searched(ana, SUBJECT), [SUBJECT]),
        "a search with hits": (_searched(ana, "order:"), [NAME]),
        "operations": (ana.get("/operations").text, [NOTE]),
    }
    for name, (html, shown) in pages.items():
        page = Page(html)
        assert page.ran == [], name
        for text in shown:
            assert text in page.text, f"{name} shows {text} as it is"
        assert "49" not in {word.strip().removeprefix("owned by ") for word in page.words}, f"{name} computes nothing"
    assert [hit.send_id for hit in scene.finds(f"r{NAME}")] == [send]
    for path in ("/sends", f"/sends/{send}", f"/held/{held}", "/operations", "/nowhere"):
        for htmx in (False, True):
            policy = ana.get(path, htmx=htmx).headers["Content-Security-Policy"]
            assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy


def _a_hostile_send(scene: Scene) -> UUID:
    asked = request("order:1", subject=SUBJECT, text=REASON, trigger=NAME)
    asked["key"] = f"order:{NAME}"
    asked["recipient"] = {"id": f"r{NAME}", "name": NAME, "address": "ana@example.test"}
    with scene.staff():
        answer = scene.call(asked)
        assert answer.kind == "2xx"
        scene.wait_for(accepted=1)
    return UUID(answer.json()["id"])


def _held_as_well(scene: Scene) -> UUID:
    asked = request("order:2", subject=SUBJECT, text=REASON, to="lost+{}@example.test")
    asked["recipient"] |= {"id": f"r-2{NAME}", "name": NAME}
    with scene.staff():
        answer = scene.call(asked)
        scene.wait_for(accepted=1, unknown=1)
        graces_end(scene.place)
        scene.wait_for(accepted=1, held=1)
    return UUID(answer.json()["id"])


def _searched(browser: Browser, text: str) -> str:
    response = browser.post("/search", q=text)
    assert response.status_code == 303
    return browser.get(response.headers["Location"]).text
