"""What a session was given is kept as long as raw events are, and no longer."""

from service.context import given
from service.core import Core
from tests.context.notebook import NOW


async def test_what_was_given_long_ago_is_forgotten(core: Core) -> None:
    await core.database.write(lambda tx: given.begin(tx, "old", "startup", ["1"], now=NOW - 1_000))
    await core.database.write(lambda tx: given.begin(tx, "new", "startup", ["1", "2"], now=NOW))
    assert await core.database.write(lambda tx: given.trim(tx, before=NOW)) == 2
    old = await core.database.read(lambda reader: given.items(reader, "old"))
    assert old == set()
    assert not given.has_start(old)
    assert await core.database.read(lambda reader: given.items(reader, "new")) == {"start-startup", "1", "2"}


def test_a_file_stands_without_its_name() -> None:
    assert given.file_item("/home/jane/secret.py") == given.file_item("/home/jane/secret.py")
    assert given.file_item("/home/jane/secret.py") != given.file_item("/home/jane/other.py")
    assert "jane" not in given.file_item("/home/jane/secret.py")
