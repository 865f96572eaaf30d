from __future__ import annotations

import pytest

from barnabas.security.principal import ANONYMOUS, KafkaPrincipal, parse_principal


@pytest.mark.parametrize(
    ("text", "type", "name"),
    [
        ("User:alice", "User", "alice"),
        ("User:CN=a,O=b:c", "User", "CN=a,O=b:c"),
        ("Group:", "Group", ""),
        (":x", "", "x"),
        ("User:*", "User", "*"),
    ],
)
def test_a_principal_is_split_at_its_first_colon_and_written_back(text: str, type: str, name: str) -> None:
    assert parse_principal(text) == KafkaPrincipal(type, name)
    assert str(parse_principal(text)) == text


@pytest.mark.parametrize("text", ["", "alice", "User"])
def test_a_principal_without_a_colon_is_refused_in_kafkas_words(text: str) -> None:
    with pytest.raises(ValueError, match=f"expected a string in format principalType:principalName but got {text}$"):
        parse_principal(text)


def test_someone_who_did_not_authenticate_is_the_user_anonymous() -> None:
    assert str(ANONYMOUS) == "User:ANONYMOUS"
