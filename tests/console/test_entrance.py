"""Who gets in: hosts, origins, the start token, forms, sessions and logins. Without a browser."""

from __future__ import annotations

import base64
import datetime
import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from barnabas.client.admin.config_values import AlterConfigOp, AlterConfigOpType, ConfigResource
from barnabas.client.admin.users import ScramMechanism, ScramUpsertion
from barnabas.client.sync import Admin
from barnabas.console.security.guard import CONTENT_SECURITY_POLICY
from barnabas.console.security.sessions import IDLE_S, MAX_SESSIONS, Attempts, Login, Sessions
from barnabas.console.server import lines_of
from barnabas.console.settings import ClusterEntry, ConsoleError, ConsoleSettings
from barnabas.operations.security.certificates import Authority
from barnabas.testing import Broker, Security
from tests.console.browser import DESKTOP, Browser
from tests.console.running_console import NAME, TOKEN, RunningConsole, entry
from tests.console.shop import allow


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(topics={"orders": 1}) as broker:
        yield broker


@pytest.fixture
def console(broker: Broker) -> Iterator[RunningConsole]:
    with RunningConsole(entry(broker), allow_changes=True) as console:
        yield console


# --- hosts and origins


def test_a_foreign_host_name_is_refused(console: RunningConsole) -> None:
    port = console.settings.port
    for host in (
        f"evil.example:{port}",
        "evil.example",
        f"localhost.evil.example:{port}",
        f"127.0.0.1.evil.example:{port}",
    ):
        assert console.request("GET", "/", headers={"Host": host}).status == 421
    for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}"):
        assert console.request("GET", "/", headers={"Host": host}).status == 401


def test_a_configured_host_name_is_accepted(broker: Broker) -> None:
    with RunningConsole(entry(broker), host_names=("console.example",)) as console:
        assert console.request("GET", "/", headers={"Host": "Console.Example"}).status == 401


def test_a_form_of_another_origin_is_refused_even_with_its_token(console: RunningConsole) -> None:
    console.enter()
    form = {"form_token": console.form_token(), "topic": "made", "partitions": "1"}
    for origin in ("http://evil.example", "null", "", f"https://127.0.0.1:{console.settings.port}"):
        assert console.request("POST", f"/c/{NAME}/topics", form, {"Origin": origin}).status == 403
    assert console.request("GET", f"/c/{NAME}/topics", headers={"Origin": "http://evil.example"}).status == 403


def test_a_form_without_the_token_of_its_session_is_refused(console: RunningConsole) -> None:
    console.enter()
    for token in ({}, {"form_token": "guessed"}):
        refused = console.request("POST", f"/c/{NAME}/topics", {"topic": "made", **token})
        assert refused.status == 403
        assert "not of your session" in refused.text


def test_a_form_that_is_too_large_or_has_no_length_is_refused(console: RunningConsole) -> None:
    console.enter()
    origin = {"Origin": console.url}
    assert console.request("POST", f"/c/{NAME}/topics", headers={**origin, "Content-Length": "3000000"}).status == 413
    assert console.request("POST", f"/c/{NAME}/topics", headers=origin).status == 413
    assert console.request("PUT", "/").status == 405


def test_every_response_has_the_headers_that_protect_it(console: RunningConsole) -> None:
    console.enter()
    for path in ("/", f"/c/{NAME}/topics", "/static/console.js", "/nothing", "/favicon.ico"):
        headers = console.get(path).headers
        assert headers["content-security-policy"] == CONTENT_SECURITY_POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert console.get(f"/c/{NAME}/topics").headers["cache-control"] == "no-store"


# --- the start token


def test_without_the_token_nothing_is_shown(console: RunningConsole) -> None:
    for path in ("/", f"/c/{NAME}", f"/c/{NAME}/topics/orders", f"/c/{NAME}/events?keys=x"):
        page = console.get(path)
        assert page.status == 401
        assert "orders" not in page.text.replace(path, "")
    assert console.get("/?token=wrong").status == 403


def test_the_token_begins_a_session_with_a_safe_cookie(console: RunningConsole) -> None:
    answer = console.get(f"/?token={TOKEN}")
    assert (answer.status, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert str(console.settings.port) in cookie
    assert TOKEN not in console.get(f"/c/{NAME}").text


def test_after_the_token_one_is_where_one_wanted_to_be(console: RunningConsole) -> None:
    target = f"/c/{NAME}/topics?q=orders"
    assert f'value="{target}"' in console.get(target).text
    form = {"token": TOKEN, "next": target}
    assert console.request("POST", "/token", form).headers["location"] == target
    for elsewhere in ("https://evil.example/", "//evil.example", "/\\evil.example"):
        answer = console.request("POST", "/token", {"token": TOKEN, "next": elsewhere})
        assert answer.headers["location"] == "/"


def test_after_ten_wrong_tokens_no_more_are_tried(console: RunningConsole) -> None:
    for _ in range(10):
        assert console.get("/?token=wrong").status == 403
    assert console.get("/?token=wrong").status == 429
    assert console.get(f"/?token={TOKEN}").status == 429


def test_logout_ends_the_session(console: RunningConsole) -> None:
    console.enter()
    kept = dict(console.cookies)
    assert console.post("/logout").status == 303
    console.cookies = kept
    assert console.get(f"/c/{NAME}").status == 401


def test_off_loopback_a_warning_is_printed_and_no_token_is_accepted_over_http() -> None:
    settings = ConsoleSettings((ClusterEntry("a", {}),), TOKEN, host="0.0.0.0", port=1)
    said = "\n".join(lines_of(settings))
    assert "other machines can reach it" in said
    assert "accepted from this machine only" in said


@pytest.mark.parametrize("path", ["/", f"/?token={TOKEN}", f"/c/{NAME}"])
def test_a_peer_of_another_machine_gets_no_login_over_http(
    broker: Broker, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.console.entrance._peer", lambda request: "192.0.2.7")
    with RunningConsole(entry(broker)) as console:
        refused = console.get(path)
        assert refused.status == 403
        assert "not encrypted" in refused.text
        assert "set-cookie" not in refused.headers


def test_over_https_the_cookie_is_secure_and_other_machines_may_log_in(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Authority("test", datetime.datetime.now(datetime.UTC)).issue("console", ["127.0.0.1"])
    (tmp_path / "chain.pem").write_text(made.chain)
    (tmp_path / "key.pem").write_text(made.key)
    monkeypatch.setattr("barnabas.console.entrance._peer", lambda request: "192.0.2.7")
    files = {"certificate": tmp_path / "chain.pem", "key": tmp_path / "key.pem"}
    with RunningConsole(entry(broker), **files) as console:
        answer = console.get(f"/?token={TOKEN}")
        assert answer.status == 303
        assert "secure" in answer.headers["set-cookie"].lower()
        assert console.get(f"/c/{NAME}").status == 200


# --- sessions as values


def test_a_session_ends_when_it_is_idle_and_there_are_not_too_many() -> None:
    now_s = [0.0]
    sessions = Sessions(lambda: now_s[0])
    first = sessions.begin()
    now_s[0] = IDLE_S
    assert sessions.find(first.id) is first
    now_s[0] = 2 * IDLE_S + 1
    assert sessions.find(first.id) is None
    many = [sessions.begin() for _ in range(MAX_SESSIONS + 1)]
    assert sessions.find(many[0].id) is None
    assert sessions.find(many[-1].id) is many[-1]


def test_a_new_login_changes_the_session_id() -> None:
    sessions = Sessions()
    before = sessions.begin()
    before.logins["a"] = Login("alice", "secret")
    after = sessions.begin(before)
    assert after.id != before.id
    assert after.logins["a"].user == "alice"
    assert sessions.find(before.id) is None


def test_failed_attempts_are_forgotten_after_a_minute() -> None:
    now_s = [0.0]
    attempts = Attempts(lambda: now_s[0])
    for _ in range(10):
        attempts.failed("peer")
    assert not attempts.may_try("peer")
    assert attempts.may_try("another")
    now_s[0] = 61.0
    assert attempts.may_try("peer")


def test_users_with_different_passwords_are_different_principals_and_no_text_has_the_password() -> None:
    one, other = Login("alice", "secret"), Login("alice", "another")
    assert one.principal != other.principal
    assert "secret" not in one.principal + repr(one)
    assert "secret" not in repr(ClusterEntry("a", {"sasl.password": "secret"}))


def test_a_mechanism_that_the_console_does_not_have_is_refused_at_the_start() -> None:
    with pytest.raises(ConsoleError, match="GSSAPI"):
        ConsoleSettings((ClusterEntry("a", {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}),), TOKEN)


# --- logins of users


AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin;User:node",
}


USERS = {"admin": "admin-secret", "alice": "alice-secret", "bob": 'b"o\\b secret'}
ACLS = [allow("User:alice", "orders"), allow("User:bob", "payments")]


@pytest.fixture(scope="module")
def secured() -> Iterator[Broker]:
    """A broker on which alice may read orders, bob may read payments, and admin everything."""
    with Broker(topics={"orders": 1, "payments": 1}, security=Security(users=USERS), config=AUTHORIZED) as broker:
        with Admin(broker.client_config("admin")) as admin:
            admin.create_acls(ACLS)
        yield broker


def secured_entry(broker: Broker) -> ClusterEntry:
    found = {key: value for key, value in broker.client_config("admin").items() if key != "sasl.jaas.config"}
    return ClusterEntry(
        NAME, {**found, "sasl.jaas.config": "the console must not use this"}, ("-b", broker.bootstrap_servers)
    )


def log_in(console: RunningConsole, user: str, password: str) -> int:
    return console.request("POST", f"/login/{NAME}", {"user": user, "password": password, "next": f"/c/{NAME}"}).status


class TestLogins:
    def test_users_log_in_with_their_own_password_and_see_what_they_may_see(self, secured: Broker) -> None:
        with RunningConsole(secured_entry(secured)) as console:
            assert "Log in to test" in console.get(f"/c/{NAME}").text
            assert console.get(f"/?token={TOKEN}").status == 303
            assert console.get(f"/c/{NAME}/topics").status == 401, "the token is no login"
            assert log_in(console, "alice", "wrong") == 403
            assert console.get(f"/c/{NAME}/topics").status == 401
            assert log_in(console, "alice", "alice-secret") == 303
            page = console.get(f"/c/{NAME}/topics").text
            assert "/topics/orders" in page
            assert "/topics/payments" not in page
            assert "alice-secret" not in page
            assert console.get(f"/c/{NAME}/topics/payments").status == 404

    def test_an_answer_of_one_user_is_never_shown_to_another(self, secured: Broker) -> None:
        with RunningConsole(secured_entry(secured)) as console:
            seen = {}
            for user, password in (("alice", "alice-secret"), ("bob", 'b"o\\b secret'), ("admin", "admin-secret")):
                console.cookies.clear()
                assert log_in(console, user, password) == 303
                seen[user] = set(re.findall(r"/topics/(orders|payments)", console.get(f"/c/{NAME}/topics").text))
            assert seen == {"alice": {"orders"}, "bob": {"payments"}, "admin": {"orders", "payments"}}

    def test_the_keys_of_another_users_answers_are_useless(self, secured: Broker) -> None:
        with RunningConsole(secured_entry(secured)) as console:
            assert log_in(console, "admin", "admin-secret") == 303
            keys = re.findall(r'data-keys="([^"]+)"', console.get(f"/c/{NAME}/access").text)[0]
            console.cookies.clear()
            assert log_in(console, "alice", "alice-secret") == 303
            stream = console.get(f"/c/{NAME}/events?keys={keys}")
            assert stream.text.startswith("event: gone")

    def test_a_change_needs_the_right_of_the_user(self, secured: Broker) -> None:
        with RunningConsole(secured_entry(secured), allow_changes=True) as console:
            assert log_in(console, "alice", "alice-secret") == 303
            planned = console.post(f"/c/{NAME}/topics/orders/delete")
            assert planned.status == 303
            done = console.post(planned.headers["location"], name="orders")
            assert "TOPIC_AUTHORIZATION_FAILED" in console.get(done.headers["location"]).text


@pytest.mark.browser
class TestLoginsInABrowser:
    def test_two_users_in_two_browsers_each_see_what_they_may_see(self, secured: Broker, browser: Browser) -> None:
        console = browser.consoles.enter_context(RunningConsole(secured_entry(secured)))
        other = Browser()
        try:
            other.show(DESKTOP)
            for each, user, own in ((browser, "alice", "orders"), (other, "bob", "payments")):
                each.open(f"{console.base}/topics?sort=-size")
                each.wait_for("Log in to test", "h1")
                assert each.violations() == []
                for password in ("wrong", USERS[user]):
                    each.fill("user", user)
                    each.fill("password", password)
                    each.type(Keys.ENTER)
                    each.wait_for("Authentication failed" if password == "wrong" else own, "main")
                assert each.driver.current_url.endswith("/topics?sort=-size"), "where the user wanted to go"
                assert each.texts("#topics tbody th") == [own]
                assert f"as {user}" in each.text()
                refusals = each.messages()
                assert all("401" in said or "403" in said for said in refusals), refusals
            browser.press("Log out")
            browser.wait_for("Log in to test", "h1")
            browser.open(f"{console.base}/topics/orders")
            browser.wait_for("Log in to test", "h1")
            assert all("401" in said for said in browser.messages())
            other.open(f"{console.base}/topics")
            assert other.texts("#topics tbody th") == ["payments"]
            other.open("about:blank")
        finally:
            other.close()


def test_secrets_of_the_metadata_are_on_no_page(broker: Broker) -> None:
    with Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        salt = b"a salt to find"
        admin.alter_user_scram_credentials([ScramUpsertion("carol", ScramMechanism.SCRAM_SHA_512, "secret", salt=salt)])
        op = AlterConfigOp("ssl.keystore.password", AlterConfigOpType.SET, "password-to-find")
        admin.incremental_alter_configs({ConfigResource.broker(1): [op]})
    hidden = ("password-to-find", base64.b64encode(salt).decode()[:-3], salt.hex(), salt.decode())
    with RunningConsole(entry(broker)) as console:
        console.enter()
        seen, wanted = set(), ["/metadata"]
        while wanted:
            path = wanted.pop()
            page = console.get(f"/c/{NAME}{path}").text
            assert not [each for each in hidden if each in page], path
            seen.add(path)
            below = [html.unescape(each) for each in re.findall(rf'href="/c/{NAME}(/metadata\?path=[^"]+)"', page)]
            wanted += [each for each in below if each not in seen and ("scram" in each or "config" in each)]
        assert any("carol" in each for each in seen), seen
        for path in ("/metadata?tab=log", "/history?routine=1", "/metadata?tab=difference&from=1", "/access?tab=users"):
            page = console.get(f"/c/{NAME}{path}").text
            assert "carol" in page or "difference" in path
            assert not [each for each in hidden if each in page], path
