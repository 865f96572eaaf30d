"""Regular expressions, compared with what RE2 for Java makes of them, which is Kafka's."""

from __future__ import annotations

import pytest

from barnabas.groups import regular_expressions
from barnabas.wire import ErrorCode, KafkaError

NAMES = ["foo", "foo-1", "foo.bar", "bar", "FOO", "a", "aa", "aaa", ""]
# Which of the names Kafka's match, and what it says of those that are none.
MATCHES = {
    "foo": "100000000",
    "foo.*": "111000000",
    "foo.": "000000000",
    "(foo|bar)": "100100000",
    "[[:alpha:]]+": "100111110",
    "a*?": "000001111",
    "a{2}": "000000100",
    "a{1000}": "000000000",
    "a{,2}": "000000000",
    "a{": "000000000",
    "\\d+": "000000000",
    "\\pL+": "100111110",
    "\\Qfoo.bar\\E": "001000000",
    "\\Qfoo": "100000000",
    "(?i)foo": "100010000",
    "(?P<n>foo)": "100000000",
    "(?<n>foo)": "100000000",
    "(?P<1>a)": "000001000",
    "(?:foo)": "100000000",
    "^foo$": "100000000",
    "foo$|bar": "100100000",
    "\\bfoo\\b": "100000000",
    "\\Aa\\z": "000001000",
    "[\\d]+": "000000000",
    "[^a]": "000000000",
    "|a": "000001001",
    "a||b": "000001001",
    "(|a)*": "000001111",
    "\\x{41}": "000000000",
    "[a-z&&[b]]": "000000000",
    "(?s).": "000001000",
    "(?U)a*": "000001111",
    "[]a]": "000001000",
    "[^]a]": "000000000",
    "\\07": "000000000",
    ".*\\.bar": "001000000",
}
FAULTS = {
    "(": "missing closing )",
    ")": "regexp/syntax: internal error",
    "a)": "regexp/syntax: internal error",
    "[": "missing closing ]",
    "[a": "missing closing ]",
    "[]": "missing closing ]",
    "[z-a]": "invalid character class range",
    "[[:foo:]]": "invalid character class range",
    "*": "missing argument to repetition operator",
    "+a": "missing argument to repetition operator",
    "?": "missing argument to repetition operator",
    "a**": "invalid nested repetition operator",
    "a*+": "invalid nested repetition operator",
    "a???": "invalid nested repetition operator",
    "a{2,1}": "invalid repeat count",
    "a{1001}": "invalid repeat count",
    "{2}": "missing argument to repetition operator",
    "\\": "trailing backslash at end of expression",
    "\\q": "invalid escape sequence",
    "\\8": "invalid escape sequence",
    "\\1": "invalid escape sequence",
    "\\pX": "invalid character class range",
    "\\p{Foo}": "invalid character class range",
    "(?P<n": "invalid named capture",
    "(?=a)": "invalid or unsupported Perl syntax",
    "(?!a)": "invalid or unsupported Perl syntax",
    "(?<=a)b": "invalid named capture",
    "(?z)a": "invalid or unsupported Perl syntax",
    "(?i": "invalid or unsupported Perl syntax",
    "(?": "invalid or unsupported Perl syntax",
    "a\\Z": "invalid escape sequence",
    "[a-\\d]": "invalid escape sequence",
    "a|*": "missing argument to repetition operator",
    "x{2}{3}": "invalid nested repetition operator",
    "a{2}*": "invalid nested repetition operator",
    "\\x4": "invalid escape sequence",
    "\\x{110000}": "invalid escape sequence",
    "\\u0041": "invalid escape sequence",
    "a++": "invalid nested repetition operator",
}
# Where RE2 itself differs: it takes these, or refuses those.
TAKEN = ["\\C", "(?P<n>a)(?P<n>b)"]
REFUSED = ["(a{100}){100}", "((a{100}){10}){10}"]


@pytest.mark.parametrize("pattern", MATCHES)
def test_a_pattern_matches_whole_names_and_the_same_ones_as_kafka_s(pattern: str) -> None:
    regular_expressions.check(pattern)
    expected = {name for name, bit in zip(NAMES, MATCHES[pattern], strict=True) if bit == "1"}
    assert regular_expressions.matching([pattern], NAMES) == {pattern: expected}


@pytest.mark.parametrize("pattern", FAULTS)
def test_what_is_no_pattern_is_refused_in_kafka_s_words(pattern: str) -> None:
    with pytest.raises(KafkaError) as caught:
        regular_expressions.check(pattern)
    assert caught.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    expected = f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {FAULTS[pattern]}."
    assert caught.value.message == expected
    assert regular_expressions.matching([pattern], NAMES) == {pattern: frozenset()}


@pytest.mark.parametrize("pattern", TAKEN)
def test_what_re2_takes_and_kafka_does_not(pattern: str) -> None:
    regular_expressions.check(pattern)


@pytest.mark.parametrize("pattern", REFUSED)
def test_what_kafka_takes_and_re2_does_not(pattern: str) -> None:
    with pytest.raises(KafkaError, match="invalid repeat count"):
        regular_expressions.check(pattern)


def test_a_pattern_that_would_take_python_s_own_engine_for_ever_takes_no_time() -> None:
    pattern = "(a+)+b|(a|aa)*c"
    assert regular_expressions.matching([pattern], ["a" * 249]) == {pattern: frozenset()}
