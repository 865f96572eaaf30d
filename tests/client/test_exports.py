"""`barnabas.client` has everything that users pass or receive, and imports it on first use."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import barnabas.client
from barnabas.client import Admin, Consumer, Producer, ShareConsumer, sync

SOURCE = Path(barnabas.client.__file__).read_text()
BUILT_IN = {
    *("Any", "AsyncIterator", "Callable", "Future", "Iterable", "Iterator", "Mapping", "Pattern", "Self", "Sequence"),
    *("bool", "bytes", "dict", "float", "frozenset", "int", "list", "object", "str", "tuple", "None", "re", "random"),
    *("K", "V"),  # type variables
}


def names_for_type_checkers() -> dict[str, str]:
    """Each name with its module, as the imports under TYPE_CHECKING have them."""
    block = next(each for each in ast.parse(SOURCE).body if isinstance(each, ast.If))
    imports = [each for each in block.body if isinstance(each, ast.ImportFrom)]
    return {name.asname or name.name: str(each.module) for each in imports for name in each.names}


def test_all_lists_of_names_agree() -> None:
    assert sorted(names_for_type_checkers()) == sorted(barnabas.client.__all__)
    assert names_for_type_checkers() == barnabas.client._MODULES
    for name in barnabas.client.__all__:
        assert getattr(barnabas.client, name) is not None
        assert name in dir(barnabas.client)
    with pytest.raises(AttributeError, match="has no attribute 'NoSuchName'"):
        _ = barnabas.client.NoSuchName  # type: ignore[attr-defined]


def names_in(cls: type) -> set[str]:
    """The names in the annotations of public methods, and of the fields of a value."""
    texts = [str(getattr(each, "__forward_arg__", each)) for each in inspect.get_annotations(cls).values()]
    for name, method in inspect.getmembers(cls, inspect.isfunction):
        if not name.startswith("_") or name == "__init__":
            texts += [str(each) for each in inspect.get_annotations(inspect.unwrap(method)).values()]
    return {name for text in texts for name in re.findall(r"[A-Za-z]\w*", text)} - BUILT_IN


@pytest.mark.parametrize(
    "cls", [Admin, Producer, Consumer, ShareConsumer, sync.Admin, sync.Producer, sync.Consumer, sync.ShareConsumer]
)
def test_what_users_pass_and_receive_is_exported(cls: type) -> None:
    seen: set[str] = set()
    wanted = names_in(cls)
    while wanted:
        name = wanted.pop()
        assert name in barnabas.client.__all__, f"{name} cannot be imported from barnabas.client"
        seen.add(name)
        found = getattr(barnabas.client, name)
        is_value = isinstance(found, type) and ("_fields" in vars(found) or "__dataclass_fields__" in vars(found))
        if is_value and name not in ("ClientSettings", "ProducerSettings", "ConsumerSettings", "NodeVersions"):
            wanted |= {each for each in names_in(found) if each not in seen}
    assert len(seen) > 5


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import barnabas.client", ("asyncio", "barnabas.wire", "barnabas.client.cluster")),
        ("from barnabas.client import KafkaError, Uuid", ("asyncio", "barnabas.client.cluster")),
        ("from barnabas.client import TopicPartition", ("asyncio", "barnabas.client.cluster")),
        ("from barnabas.client import NewTopic", ("barnabas.client.admin.groups", "barnabas.client.producer")),
        ("from barnabas.client import Producer", ("barnabas.client.consumer", "barnabas.client.admin.admin")),
        ("from barnabas.client import sync", ("asyncio", "barnabas.client.cluster")),
        ("from barnabas.client.sync import Producer", ("barnabas.client.consumer", "barnabas.client.admin.admin")),
    ],
)
def test_an_import_brings_no_more_than_it_needs(statement: str, absent: tuple[str, ...]) -> None:
    script = f"{statement}\nimport sys\nprint(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()
    assert [name for name in absent if name in loaded] == []


def test_modules_in_the_list_exist() -> None:
    for module in set(barnabas.client._MODULES.values()):
        import_module(module)
