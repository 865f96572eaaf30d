"""Client settings of a command, from options, a properties file, environment variables and profiles.

Its one rule: options override the file of --command-config, that file overrides BARNABAS_* variables, and those override the
profile. Each setting keeps its origin, so that an error can name it. This module does not connect; the client validates its
settings.

    # ~/.config/barnabas/config.toml
    default = "local"

    [profiles.local]
    bootstrap.servers = "localhost:9092"

    [profiles.production]
    bootstrap.servers = ["one:9093", "two:9093"]
    command-config = "production.properties"    # beside this file
    output = "json"
    security.protocol = "SASL_SSL"              # any setting of Kafka's clients
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.cli.terminal.failures import Failure, failures
from barnabas.similar_names import did_you_mean

CONFIG_VARIABLE = "BARNABAS_CONFIG"
PROFILE_VARIABLE = "BARNABAS_PROFILE"
OUTPUT_VARIABLE = "BARNABAS_OUTPUT"
COMMAND_CONFIG_VARIABLE = "BARNABAS_COMMAND_CONFIG"
BOOTSTRAP_SERVERS = "bootstrap.servers"
BOOTSTRAP_CONTROLLERS = "bootstrap.controllers"
DEFAULT_BOOTSTRAP_SERVERS = "localhost:9092"
BY_DEFAULT = "by default"
"""Origin of an address that nothing sets."""

_PREFIX = "BARNABAS_"
_OF_THE_COMMAND_LINE = ("command-config", "output")


class Setting(NamedTuple):
    """A value, and where it was set: an option, a file, a variable or a profile."""

    value: str
    origin: str


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile of the config file: client settings, and defaults of --command-config and --output."""

    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    command_config: Path | None = None
    output: str | None = None


NO_PROFILE = Profile("")


@dataclass(frozen=True, slots=True)
class Connection:
    """Client settings by name, each with its origin."""

    settings: Mapping[str, Setting]

    @property
    def address(self) -> str:
        """The bootstrap address and its origin, for messages."""
        found = self.settings.get(BOOTSTRAP_CONTROLLERS) or self.settings[BOOTSTRAP_SERVERS]
        return f"{found.value} ({found.origin})"

    def values(self) -> dict[str, str]:
        return {name: setting.value for name, setting in self.settings.items()}


def config_path(env: Mapping[str, str]) -> Path:
    """Return the path of the config file: BARNABAS_CONFIG, or the default path in the XDG config directory."""
    if env.get(CONFIG_VARIABLE):
        return Path(env[CONFIG_VARIABLE]).expanduser()
    base = env.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "barnabas" / "config.toml"


def load_profile(env: Mapping[str, str], name: str | None = None) -> Profile:
    """Return the named profile; else that of BARNABAS_PROFILE, else the file's default, else an empty one. Raises Failure."""
    path = config_path(env)
    wanted = name or env.get(PROFILE_VARIABLE) or None
    content = _read(path, required=bool(env.get(CONFIG_VARIABLE)))
    profiles = content.get("profiles", {})
    if not isinstance(profiles, dict):
        raise Failure("[profiles] must be a table of profiles", resource=str(path))
    wanted = wanted or content.get("default")
    if wanted is None:
        return NO_PROFILE
    if wanted not in profiles:
        known = ", ".join(sorted(profiles)) or "none"
        hint = did_you_mean(str(wanted), profiles)
        raise Failure(f"no profile {wanted!r}; profiles: {known}{hint}", resource=str(path))
    return _profile(path, str(wanted), profiles[wanted])


def profile_names(env: Mapping[str, str]) -> list[str]:
    """Return the names of all profiles, for completion; an empty list if the file is invalid."""
    try:
        return sorted(_read(config_path(env), required=False).get("profiles", {}))
    except Failure:
        return []


def resolve(
    env: Mapping[str, str],
    profile: Profile = NO_PROFILE,
    *,
    bootstrap_servers: str | None = None,
    bootstrap_controllers: str | None = None,
    command_config: Path | None = None,
    given: Mapping[str, str] | None = None,
) -> Connection:
    """Merge the settings of all sources by their precedence."""
    found: dict[str, Setting] = {}
    of_profile = f"profile {profile.name}"
    _merge(found, profile.settings, of_profile)
    if profile.command_config is not None:
        _merge(found, _read_properties(profile.command_config), f"{profile.command_config} of {of_profile}")
    for name, setting in _from_variables(env):
        _merge(found, {name: setting.value}, setting.origin)
    if env.get(COMMAND_CONFIG_VARIABLE) and command_config is None:
        command_config = Path(env[COMMAND_CONFIG_VARIABLE])
    if command_config is not None:
        _merge(found, _read_properties(command_config), str(command_config))
    _merge(found, given or {}, "-X")
    if bootstrap_servers:
        _merge(found, {BOOTSTRAP_SERVERS: bootstrap_servers}, "--bootstrap-server")
    if bootstrap_controllers:
        _merge(found, {BOOTSTRAP_CONTROLLERS: bootstrap_controllers}, "--bootstrap-controller")
    if BOOTSTRAP_SERVERS not in found and BOOTSTRAP_CONTROLLERS not in found:
        found[BOOTSTRAP_SERVERS] = Setting(DEFAULT_BOOTSTRAP_SERVERS, BY_DEFAULT)
    return Connection(found)


def _merge(found: dict[str, Setting], more: Mapping[str, str], origin: str) -> None:
    for name, value in more.items():
        found[name] = Setting(value, origin)
    # A client connects to brokers or to controllers: the later source decides.
    if BOOTSTRAP_SERVERS in more:
        found.pop(BOOTSTRAP_CONTROLLERS, None)
    elif BOOTSTRAP_CONTROLLERS in more:
        found.pop(BOOTSTRAP_SERVERS, None)


def _from_variables(env: Mapping[str, str]) -> Iterator[tuple[str, Setting]]:
    """Yield settings of variables: BARNABAS_SECURITY_PROTOCOL is security.protocol; BARNABAS_BOOTSTRAP_SERVER works too."""
    given = [name for name in env if name.startswith(_PREFIX) and env[name]]
    if not given:
        return
    from barnabas.client.settings import definitions  # slow to import, and rarely needed

    known = {_PREFIX + name.upper().replace(".", "_"): name for name in definitions()}
    for singular, name in (("SERVER", BOOTSTRAP_SERVERS), ("CONTROLLER", BOOTSTRAP_CONTROLLERS)):
        known[f"{_PREFIX}BOOTSTRAP_{singular}"] = name
    for variable in sorted(given):
        if variable in known:
            yield known[variable], Setting(env[variable], variable)


def _read(path: Path, *, required: bool) -> dict[str, Any]:
    import tomllib  # imported late: most users have no config file

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if not required:
            return {}
        raise Failure(f"no such file; it is set by {CONFIG_VARIABLE}", resource=str(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Failure(f"not valid TOML: {error}", resource=str(path)) from None
    except OSError as error:
        raise Failure(str(error.strerror), resource=str(path)) from None


def _profile(path: Path, name: str, table: Any) -> Profile:
    if not isinstance(table, dict):
        raise Failure(f"profile {name!r} must be a table", resource=str(path))
    settings = {key: value for key, value in _flatten(table) if key not in _OF_THE_COMMAND_LINE}
    command_config = table.get("command-config")
    where = None if command_config is None else path.parent / Path(str(command_config)).expanduser()
    output = table.get("output")
    return Profile(name, settings, where, None if output is None else str(output))


def _flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield settings with dotted names: TOML parses `security.protocol` as nested tables."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        elif isinstance(value, list):
            yield prefix + key, ",".join(map(str, value))
        else:
            yield prefix + key, str(value).lower() if isinstance(value, bool) else str(value)


def _read_properties(path: Path) -> dict[str, str]:
    from barnabas.config.properties import loads

    with failures(str(path)):
        return loads(path.read_text(encoding="latin-1"))


def environment() -> Mapping[str, str]:
    return os.environ
