"""Settings that protect something and are not implemented: a node must not run as if they were not there."""

from __future__ import annotations

import pytest

from barnabas.config.server import load
from barnabas.config.unsupported import STANDARD_AUTHORIZER, UNSECURED_VALIDATOR, check_supported, ignored
from barnabas.config.values import ConfigError

# The settings of Apache Kafka's own config/server.properties.
DISTRIBUTED = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
log.dirs=/tmp/kraft-combined-logs
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
"""
PROTOCOLS = "listener.security.protocol.map"


def refusal(**settings: str) -> ConfigError:
    return refusal_of({name.replace("_", "."): value for name, value in settings.items()})


def refusal_of(overrides: dict[str, str]) -> ConfigError:
    config = load(DISTRIBUTED, overrides)
    with pytest.raises(ConfigError) as refused:
        check_supported(config)
    assert "\n" not in str(refused.value)
    return refused.value


def accepted(overrides: dict[str, str]) -> tuple[str, ...]:
    """Return the warnings."""
    config = load(DISTRIBUTED, overrides)
    check_supported(config)
    return config.warnings


def test_the_settings_of_apache_kafkas_distribution_are_accepted() -> None:
    assert accepted({}) == ()


def secured(protocol: str, **settings: str) -> dict[str, str]:
    """The settings of a client listener with this protocol."""
    listeners = f"{protocol}://:9094,CONTROLLER://:9093"
    given = {"listeners": listeners, "advertised.listeners": f"{protocol}://localhost:9094"}
    given |= {"inter.broker.listener.name": protocol, "sasl.mechanism.inter.broker.protocol": "PLAIN"}
    return given | {name.replace("_", "."): value for name, value in settings.items()}


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", ["GSSAPI", "DIGEST-MD5"])
def test_a_mechanism_that_is_not_implemented_is_refused_by_name(protocol: str, mechanism: str) -> None:
    error = refusal(**secured(protocol, sasl_enabled_mechanisms=f"PLAIN,{mechanism}"))
    assert error.key == "sasl.enabled.mechanisms"
    assert f"Listener {protocol} enables the SASL mechanism {mechanism}" in error.message
    assert "Set sasl.enabled.mechanisms to some of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER" in error.message
    accepted(secured(protocol, sasl_enabled_mechanisms="PLAIN,SCRAM-SHA-256,OAUTHBEARER"))


def test_the_mechanism_of_brokers_must_be_enabled_on_the_controllers_listener() -> None:
    protocols = {PROTOCOLS: "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT", "sasl.enabled.mechanisms": "PLAIN"}
    assert refusal(**protocols).key == "sasl.mechanism.controller.protocol"
    accepted(protocols | {"sasl.mechanism.controller.protocol": "PLAIN"})


@pytest.mark.parametrize(
    ("protocol", "name"),
    [
        ("SASL_PLAINTEXT", "sasl.server.callback.handler.class"),
        ("SASL_PLAINTEXT", "listener.name.sasl_plaintext.plain.sasl.server.callback.handler.class"),
        ("SASL_SSL", "listener.name.sasl_ssl.sasl.login.class"),
        ("SASL_SSL", "listener.name.sasl_ssl.oauthbearer.sasl.server.callback.handler.class"),
        ("SASL_SSL", "listener.name.sasl_ssl.oauthbearer.sasl.login.callback.handler.class"),
        ("SASL_SSL", "sasl.oauthbearer.jwt.validator.class"),
        ("SASL_SSL", "ssl.engine.factory.class"),
        ("SSL", "listener.name.ssl.ssl.engine.factory.class"),
    ],
)
def test_a_class_of_a_secured_listener_is_refused(protocol: str, name: str) -> None:
    given = secured(protocol, sasl_enabled_mechanisms="PLAIN")
    accepted(given)
    assert refusal_of(given | {name: "com.example.Class"}).key == name


def test_a_secret_from_a_config_provider_is_refused_if_a_listener_needs_it() -> None:
    given = {"config.providers": "file", "ssl.key.password": "${file:/etc/kafka/secrets:password}"}
    assert accepted(given) == ()
    assert refusal(**secured("SSL", **given)).key == "ssl.key.password"


OAUTH = "org.apache.kafka.common.security.oauthbearer."
OF_TOKENS = "listener.name.sasl_ssl.oauthbearer.sasl.server.callback.handler.class"


def test_classes_of_kafka_for_tokens_are_accepted_where_they_count() -> None:
    given = secured("SASL_SSL", sasl_enabled_mechanisms="PLAIN,OAUTHBEARER")
    checking = {OF_TOKENS: OAUTH + "OAuthBearerValidatorCallbackHandler"}
    logging_in = {
        "listener.name.sasl_ssl.oauthbearer.sasl.login.callback.handler.class": OAUTH
        + "OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.jwt.validator.class": OAUTH + "BrokerJwtValidator",
    }
    assert accepted(given | checking | logging_in) == ()
    for name in ("sasl.server.callback.handler.class", "listener.name.sasl_ssl.sasl.server.callback.handler.class"):
        assert refusal_of(given | {name: checking[OF_TOKENS]}).key == name  # Kafka would accept any token


def test_tokens_without_a_signature_are_a_warning_unless_they_are_asked_for() -> None:
    given = secured("SASL_SSL", sasl_enabled_mechanisms="PLAIN,OAUTHBEARER")
    (warning,) = accepted(given)
    assert warning.startswith("the listener SASL_SSL accepts tokens without a signature")
    assert accepted(given | {OF_TOKENS: UNSECURED_VALIDATOR}) == ()


def test_settings_of_tls_and_sasl_are_accepted_if_no_listener_uses_them() -> None:
    unused = {
        "ssl.client.auth": "required",
        "ssl.keystore.location": "/no/such/file.jks",
        "ssl.keystore.password": "${file:/etc/kafka/secrets:password}",
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        "ssl.cipher.suites": "TLS_AES_256_GCM_SHA384",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": "x required;",
        "listener.name.sasl_ssl.principal.builder.class": "com.example.Builder",
        "connections.max.reauth.ms": "60000",
        "delegation.token.secret.key": "secret",
        "security.providers": "com.example.Provider",
        "early.start.listeners": "PLAINTEXT",
        "principal.builder.class": "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:a;User:CN=b,OU=c",
        "create.topic.policy.class.name": "",
        "replica.selector.class": "org.apache.kafka.common.replica.LeaderSelector",
    }
    assert accepted(unused) == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("authorizer.class.name", "com.example.Authorizer"),
        ("authorizer.class.name", "kafka.security.authorizer.AclAuthorizer"),
        ("principal.builder.class", "com.example.Builder"),
        ("listener.name.plaintext.principal.builder.class", "com.example.Builder"),
        ("listener.name.controller.principal.builder.class", "com.example.Builder"),
        ("create.topic.policy.class.name", "com.example.Policy"),
        ("alter.config.policy.class.name", "com.example.Policy"),
        ("client.quota.callback.class", "com.example.Callback"),
        ("replica.selector.class", "com.example.Selector"),
    ],
)
def test_a_class_that_would_protect_something_is_refused(name: str, value: str) -> None:
    error = refusal(**{name: value})
    assert error.key == name
    assert f"{name}={value} is not supported" in str(error)


def test_a_value_from_a_config_provider_is_refused() -> None:
    given = {"config.providers": "file", "log.dirs": "/data", "broker.rack": "${file:/etc/rack:name}"}
    assert refusal(**given).key == "broker.rack"
    assert accepted({"broker.rack": "${file:/etc/rack:name}"}) == ()  # Kafka keeps it as it is, too


def test_a_super_user_without_a_type_is_refused_as_in_kafka() -> None:
    error = refusal(**{"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:a;b"})
    assert str(error) == "super.users: expected a string in format principalType:principalName but got b"
    assert "super.users has no effect" in accepted({"super.users": "b"})[0]


def test_settings_without_effect_are_warnings_and_limits_of_connections_are_not() -> None:
    given = {
        "super.users": "User:a",
        "allow.everyone.if.no.acl.found": "false",
        "max.connections": "100",
        "max.connection.creation.rate": "5",
        "listener.name.plaintext.max.connections": "7",
        "listener.name.unknown.max.connections": "7",
    }
    assert [warning.partition(" ")[0] for warning in accepted(given)] == [
        "listener.name.unknown.max.connections",
        "allow.everyone.if.no.acl.found",
        "super.users",
    ]


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("listener.name.SASL_SSL.ssl.client.auth", "listener.name.sasl_ssl.ssl.client.auth"),
        ("Listener.Name.sasl_ssl.ssl.client.auth", "listener.name.sasl_ssl.ssl.client.auth"),
        (
            "listener.name.sasl_ssl.PLAIN.connections.max.reauth.ms",
            "listener.name.sasl_ssl.plain.connections.max.reauth.ms",
        ),
        (f"listener.name.sasl_ssl.OAUTHBEARER.{OF_TOKENS.split('.', 4)[4]}", OF_TOKENS),
    ],
)
def test_a_prefix_in_upper_case_would_protect_nothing_and_is_refused(wrong: str, right: str) -> None:
    error = refusal_of(secured("SASL_SSL", sasl_enabled_mechanisms="PLAIN") | {wrong: "required"})
    assert error.key == wrong and f"Write {right}, or remove {wrong}" in error.message


def test_settings_of_listeners_that_do_not_exist_and_unknown_ones_are_warnings() -> None:
    given = {
        "listener.name.sasl_sll.ssl.client.auth": "required",
        "listener.name.sasl_ssl.ssl.cient.auth": "required",
        "listener.name.controller.ssl.client.auth": "required",  # of connections to it
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": "x",
    }
    assert accepted(secured("SASL_SSL", sasl_enabled_mechanisms="PLAIN") | given) == (
        "listener.name.sasl_sll.ssl.client.auth has no effect, because there is no listener SASL_SLL; did you mean sasl_ssl?",
        "listener.name.sasl_ssl.ssl.cient.auth is not a known config and is ignored; did you mean ssl.client.auth?",
    )


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_certificates_of_all_authorities_are_a_warning(protocol: str) -> None:
    own = {f"listener.name.{protocol.lower()}.ssl.client.auth": "required"}
    (warning,) = accepted(secured(protocol, sasl_enabled_mechanisms="PLAIN") | own)
    assert warning.startswith(
        f"ssl.client.auth=required of the listener {protocol} accepts clients with a certificate of any"
    )
    for store in (
        "ssl.truststore.location",
        "ssl.truststore.certificates",
        f"listener.name.{protocol.lower()}.ssl.truststore.location",
    ):
        assert accepted(secured(protocol, sasl_enabled_mechanisms="PLAIN") | own | {store: "x"}) == ()
    assert (
        accepted(secured("SASL_SSL", sasl_enabled_mechanisms="PLAIN", ssl_client_auth="required")) == ()
    )  # not of SASL


def test_users_between_commas_and_a_login_without_prefixes_are_warnings() -> None:
    given = secured("SASL_SSL", sasl_enabled_mechanisms="PLAIN", authorizer_class_name=STANDARD_AUTHORIZER)
    (warning,) = accepted(given | {"super.users": "User:node,User:admin"})
    assert "separated by semicolons" in warning
    assert accepted(given | {"super.users": "User:CN=node,OU=dev;User:admin"}) == ()
    (warning,) = accepted(given | {"sasl.jaas.config": "x"})
    assert warning.startswith("sasl.jaas.config has no effect")


def test_classes_of_java_that_would_be_replaced_are_a_warning() -> None:
    def warnings(**settings: str) -> list[str]:
        return ignored(load(DISTRIBUTED, {name.replace("_", "."): value for name, value in settings.items()}))

    simple = "org.apache.kafka.coordinator.group.assignor.SimpleAssignor"
    assert warnings(group_share_assignors=simple, group_consumer_assignors="uniform, range") == []
    (warning,) = warnings(group_share_assignors="com.example.Fair")
    assert warning.startswith("com.example.Fair in group.share.assignors has no effect")
    (warning,) = warnings(group_consumer_assignors="range,com.example.Fair")
    assert "com.example.Fair in group.consumer.assignors" in warning
    assert "range" not in warning.partition(" in ")[0]
    (warning,) = warnings(group_share_persister_class_name="com.example.Forgetful")
    assert "the share coordinator keeps the state" in warning


def test_share_groups_have_one_assignor() -> None:
    with pytest.raises(ConfigError, match="must contain exactly one assignor, but found 2"):
        load(DISTRIBUTED, {"group.share.assignors": "simple,com.example.Fair"})
