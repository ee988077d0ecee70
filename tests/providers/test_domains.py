"""SPF, DKIM and DMARC of a sending domain: what is wrong, by which rule, and what to publish (RFC 7208, 6376, 7489).

A real name server on loopback is asked.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from dashboard.providers import PROVIDERS, provider
from dashboard.providers.base import endpoint
from dashboard.providers.checking import MOST_DOMAINS, check_domains
from dashboard.providers.dkim import check_dkim
from dashboard.providers.dmarc import check_dmarc
from dashboard.providers.findings import Finding
from dashboard.providers.names import Names
from dashboard.providers.spf import check_spf
from tests.name_server import NameServer

Zone = Mapping[str, list[str] | str]
AT = "shop.example"


def txt(text: str) -> str:
    """A TXT record in strings of at most 255 characters, as zone files have it."""
    return "TXT " + " ".join(f'"{text[i : i + 255]}"' for i in range(0, len(text), 255))


def spf(zone: Zone, *, own_return_path: bool = True) -> list[Finding]:
    with NameServer(zone) as server:
        return check_spf(Names(server.servers), AT, title="SMTP", own_return_path=own_return_path)


def told(findings: list[Finding]) -> list[tuple[str, str]]:
    """Verdict and rule of each."""
    return [(finding.verdict, finding.rule.partition(" ")[2]) for finding in findings]


# ── SPF ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def includes(number: int) -> dict[str, list[str] | str]:
    names = [f"i{n}.example" for n in range(number)]
    return {
        AT: [txt(f"v=spf1 {' '.join(f'include:{name}' for name in names)} ~all")],
        **{name: [txt("v=spf1 ip4:192.0.2.1 -all")] for name in names},
    }


@pytest.mark.parametrize(
    ("records", "answer"),
    [
        (["v=spf1 ip4:192.0.2.0/24 ip6:2001:db8::/32 -all"], [("good", "")]),
        (["V=SPF1 ip4:192.0.2.1 ~ALL", "google-site-verification=x"], [("good", "")]),
        (["v=spf1 -all", "v=spf1 include:_spf.example ~all"], [("wrong", "7208 §3.2, §4.5")]),
        (["v=spf10 -all"], [("wrong", "7208 §4.5")]),
        (["v=spf1 ip4:192.0.2.1 +all"], [("wrong", "7208 §5.1")]),
        (["v=spf1 ip4:192.0.2.1 all"], [("wrong", "7208 §5.1")]),
        (["v=spf1 ip4:0.0.0.0/0 -all"], [("wrong", "7208 §5.6")]),
        (["v=spf1 ip4:192.0.2.1 ?all"], [("weak", "7208 §8.2")]),
        (["v=spf1 ip4:192.0.2.1"], [("weak", "7208 §4.7")]),
        (["v=spf1 -all include:late.example"], [("weak", "7208 §5.1")]),
        (["v=spf1 ptr ~all"], [("weak", "7208 §5.5")]),
        (["v=spf1 ipv4:192.0.2.1 ~all"], [("wrong", "7208 §4.6")]),
        (["v=spf1 ip4:192.0.2.1.9 ~all"], [("wrong", "7208 §4.6")]),
        (["v=spf1 ip4:2001:db8::1 ~all"], [("wrong", "7208 §4.6")]),
        (["v=spf1 include: ~all"], [("wrong", "7208 §4.6")]),
        (["v=spf1 unknown=thing exists:%{i}.list.example include:%{d}.x.example -all"], [("good", "")]),
        (["v=spf1 include:nobody.example ~all"], [("wrong", "7208 §5.2")]),
        (["v=spf1 redirect=nobody.example"], [("wrong", "7208 §6.1")]),
        (["v=spf1 include:shop.example ~all"], [("wrong", "7208 §4.6.4")]),
    ],
)
def test_a_record_is_read_as_a_receiver_reads_it(records: list[str], answer: list[tuple[str, str]]) -> None:
    assert told(spf({AT: [txt(record) for record in records]})) == answer


def test_ten_look_ups_are_taken_and_one_more_breaks_the_record() -> None:
    assert told(spf(includes(10))) == [("good", "")]
    (finding,) = spf(includes(11))
    assert (finding.verdict, finding.rule, "more than 10" in finding.words) == ("wrong", "RFC 7208 §4.6.4", True)


def test_look_ups_of_included_records_count_as_well() -> None:
    zone = includes(6)
    zone["i0.example"] = [txt("v=spf1 a mx a:a.example a:b.example mx:c.example -all")]
    zone |= {name: ["A 192.0.2.1", "MX 1 a.example."] for name in ("a.example", "b.example", "c.example")}
    (finding,) = spf(zone)
    assert (finding.verdict, finding.rule) == ("wrong", "RFC 7208 §4.6.4")


def test_more_than_two_terms_that_name_nothing_break_it() -> None:
    (finding,) = spf({AT: [txt("v=spf1 a:x.example mx:y.example a:z.example/24 ~all")]})
    assert (finding.verdict, finding.rule, "3 of its terms" in finding.words) == ("wrong", "RFC 7208 §4.6.4", True)


def test_an_included_record_that_passes_everybody_passes_them_for_the_domain() -> None:
    (finding,) = spf({AT: [txt("v=spf1 include:open.example -all")], "open.example": [txt("v=spf1 +all")]})
    assert (finding.verdict, "open.example" in finding.words, AT in finding.words) == ("wrong", True, True)


def test_a_redirect_ends_the_record_and_an_included_end_does_not() -> None:
    assert told(spf({AT: [txt("v=spf1 redirect=r.example")], "r.example": [txt("v=spf1 ip4:192.0.2.1 -all")]})) == [
        ("good", "")
    ]
    assert told(spf({AT: [txt("v=spf1 include:r.example")], "r.example": [txt("v=spf1 ip4:192.0.2.1 -all")]})) == [
        ("weak", "7208 §4.7")
    ]


def test_no_record_is_wrong_only_where_the_return_path_is_the_domains_own() -> None:
    (missing,) = spf({AT: ["A 192.0.2.1"]})
    assert (missing.verdict, missing.rule, missing.publish[:25]) == (
        "wrong",
        "RFC 7208 §2.4",
        'shop.example TXT "v=spf1 ',
    )
    assert told(spf({AT: ["A 192.0.2.1"]}, own_return_path=False)) == [("unknown", "7208 §2.4")]


def test_a_record_too_long_for_a_datagram_is_read_whole() -> None:
    networks = " ".join(f"ip4:198.51.100.{n}" for n in range(60))
    assert told(spf({AT: [txt(f"v=spf1 {networks} +all")]})) == [("wrong", "7208 §5.1")]


# ── DKIM ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def rsa_key(bits: int) -> str:
    key = rsa.generate_private_key(65537, bits).public_key()
    return base64.b64encode(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).decode()


GOOD_KEY = rsa_key(2048)
EDWARDS = base64.b64encode(
    ed25519.Ed25519PrivateKey.generate().public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
).decode()


def dkim(zone: Zone, *selectors: str, each: bool = True) -> list[Finding]:
    with NameServer(zone) as server:
        return check_dkim(Names(server.servers), AT, selectors, title="SMTP", each=each)


@pytest.mark.parametrize(
    ("records", "answer"),
    [
        ([f"v=DKIM1; k=rsa; p={GOOD_KEY}"], ("good", "")),
        ([f"p={GOOD_KEY[:200]} {GOOD_KEY[200:]}"], ("good", "")),
        ([f"v=DKIM1; k=ed25519; p={EDWARDS}"], ("good", "")),
        ([f"v=DKIM1; p={rsa_key(1024)}"], ("weak", "8301 §3.2")),
        ([f"v=DKIM1; t=y; p={GOOD_KEY}"], ("weak", "6376 §3.6.1")),
        ([], ("wrong", "6376 §3.6.2")),
        ([f"p={GOOD_KEY}", f"p={EDWARDS}"], ("wrong", "6376 §3.6.2.2")),
        (["v=DKIM1; p="], ("wrong", "6376 §3.6.1")),
        (["v=DKIM1; p=tooshort"], ("wrong", "6376 §3.6.1")),
        ([f"v=DKIM1; k=dsa; p={GOOD_KEY}"], ("wrong", "6376 §3.6.1")),
        ([f"v=DKIM1; s=tlsrpt; p={GOOD_KEY}"], ("wrong", "6376 §3.6.1")),
        ([f"v=DKIM1; h=sha1; p={GOOD_KEY}"], ("wrong", "8301 §3.1")),
        (["v=spf1 -all"], ("wrong", "6376 §3.6.1")),
    ],
)
def test_a_key_is_judged_as_a_verifier_does(records: list[str], answer: tuple[str, str]) -> None:
    assert told(dkim({f"s1._domainkey.{AT}": [txt(record) for record in records]}, "s1")) == [answer]


def test_a_key_is_found_behind_the_alias_that_providers_ask_for() -> None:
    zone: Zone = {
        f"s1._domainkey.{AT}": ["CNAME s1.keys.example."], "s1.keys.example": [txt(f"v=DKIM1; p={GOOD_KEY}")],
    }  # fmt: skip
    assert told(dkim(zone, "s1")) == [("good", "")]


def test_each_selector_that_somebody_named_has_to_be_there_and_one_of_the_usual_ones() -> None:
    zone: Zone = {f"s2._domainkey.{AT}": [txt(f"v=DKIM1; p={GOOD_KEY}")]}
    assert told(dkim(zone, "s1", "s2")) == [("wrong", "6376 §3.6.2"), ("good", "")]
    assert told(dkim(zone, "s1", "s2", each=False)) == [("good", "")]
    (missing,) = dkim({}, "s1", "s2", each=False)
    assert (missing.verdict, missing.publish) == ("wrong", f"s1._domainkey.{AT}, as SMTP shows it for this domain")
    assert "another selector" in missing.words
    (open_,) = dkim(zone, each=False)
    assert (open_.verdict, "dkim_selectors" in open_.words) == ("unknown", True)


# ── DMARC ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def dmarc(zone: Zone, domain: str = AT) -> list[Finding]:
    with NameServer(zone) as server:
        return check_dmarc(Names(server.servers), domain)


REPORTS = "rua=mailto:dmarc@shop.example"


@pytest.mark.parametrize(
    ("records", "answer"),
    [
        ([f"v=DMARC1; p=reject; {REPORTS}"], ("good", "")),
        ([f"v=DMARC1; p=none; {REPORTS}"], ("weak", "7489 §6.3")),
        ([f"v=DMARC1; p=quarantine; pct=20; {REPORTS}"], ("weak", "7489 §6.3")),
        ([f"v=DMARC1; p=nonsense; {REPORTS}"], ("weak", "7489 §6.3")),
        (["v=DMARC1; p=nonsense"], ("wrong", "7489 §6.3, §6.6.3")),
        (["v=DMARC1; p=reject", "v=DMARC1; p=none"], ("wrong", "7489 §6.6.3")),
        (["p=reject; v=DMARC1"], ("wrong", "7489 §6.6.3")),
        (["v=spf1 -all"], ("wrong", "7489 §6.6.3")),
        ([], ("wrong", "7489 §6.6.3")),
    ],
)
def test_a_policy_is_judged_as_a_receiver_does(records: list[str], answer: tuple[str, str]) -> None:
    (finding,) = dmarc({f"_dmarc.{AT}": [txt(record) for record in records]})
    assert told([finding]) == [answer]
    assert "dmarc@" not in finding.words


def test_a_domain_without_a_policy_falls_under_that_of_its_parent() -> None:
    zone = {f"_dmarc.{AT}": [txt(f"v=DMARC1; p=reject; sp=none; {REPORTS}")]}
    (below,) = dmarc(zone, f"mail.eu.{AT}")
    assert (below.verdict, f"_dmarc.{AT}" in below.words) == ("weak", True)
    assert told(dmarc(zone)) == [("good", "")]


def test_a_policy_that_nobody_reports_about_says_so() -> None:
    (finding,) = dmarc({f"_dmarc.{AT}": [txt("v=DMARC1; p=reject")]})
    assert (finding.verdict, "rua=" in finding.words) == ("good", True)


# ── all of them ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_nobody_answers_is_not_known_and_waited_for_no_longer_than_allowed() -> None:
    zone = {AT: "broken", f"s1._domainkey.{AT}": "broken", f"_dmarc.{AT}": "silent"}
    with NameServer(zone) as server:
        names = Names(server.servers, seconds=0.3)
        findings = check_domains(
            provider("sendgrid"), {"dkim_selectors": "s1"}, domains=[AT, "late.example"], names=names
        )
    assert {finding.verdict for finding in findings} == {"unknown"}
    assert "the name servers could not tell" in findings[0].words
    assert "in time" in findings[2].words
    assert "the time for this check is over" in findings[-1].words
    assert not [question for question in server.asked if "late.example" in question]


def test_named_domains_go_before_those_seen_and_of_many_only_the_first_are_looked_at() -> None:
    many = [f"d{n}.example" for n in range(MOST_DOMAINS + 2)]
    with NameServer({}) as server:
        names = Names(server.servers)
        found = check_domains(provider("sendgrid"), {"sending_domains": "Own.example"}, domains=many, names=names)
        assert {finding.about for finding in found} == {"own.example"}
        found = check_domains(provider("sendgrid"), {}, domains=many, names=names)
        assert {finding.about for finding in found} == {*many[:MOST_DOMAINS], ""}
        assert "2 more were not looked at: d5.example, d6.example" in found[-1].words
        (nothing,) = check_domains(provider("sendgrid"), {}, domains=[], names=names)
    assert (nothing.verdict, "sending_domains" in nothing.words) == ("unknown", True)


@pytest.mark.parametrize("known", PROVIDERS, ids=lambda known: known.name)
def test_what_only_the_check_reads_leaves_an_account_where_it_was(known: object) -> None:
    chosen = provider(known.name)  # type: ignore[attr-defined]
    checked = {"sending_domains": "shop.example", "dkim_selectors": "s9"}
    assert endpoint(chosen, checked) == endpoint(chosen, {})
