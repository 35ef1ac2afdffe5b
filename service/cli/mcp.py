"""`gapless mcp`: the tools on standard input and output, from the live service or else from the database itself."""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from service.mcp import dialogue, stdio
from service.mcp.rpc import Json, RpcError

if TYPE_CHECKING:
    import asyncio

    from service.edge.mcp import Toolbox
    from service.settings import Configuration


def mcp() -> None:
    """Serve the MCP tools to the client that starts this command, on standard input and output."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Claude Code ends its servers so, and waits 100 ms for it
    sink = os.dup(1)
    os.dup2(2, 1)  # whatever else is printed must not get between the answers
    stdio.serve(_Tools(), source=0, sink=sink)


class _Tools:
    """Every call asks the live service, and does it here when there is none: services come and go while a client's
    session lasts. Nothing is loaded before the first one: a client waits for the answer to `initialize`."""

    def listed(self) -> list[Json]:
        from service.mcp import catalogue
        from service.place import home_folder

        tools = catalogue.read(home_folder())
        return _list_here() if tools is None else tools

    async def call(self, name: str, arguments: Json) -> Json:
        try:
            return await self._call(name, arguments)
        except RpcError:
            raise
        except Exception as error:  # noqa: BLE001 - the session goes on
            from service.cli.output import in_words

            return dialogue.told(in_words(error), failed=True)

    async def _call(self, name: str, arguments: Json) -> Json:
        from hooks.transport import Away

        try:
            return await self._ask(name, arguments)
        except Away:
            async with self._turn_here, _opened_here(self._caller) as toolbox:
                return await toolbox.call(name, arguments)

    async def _ask(self, name: str, arguments: Json) -> Json:
        import asyncio

        from service.mcp import remote
        from service.place import home_folder

        params = {"name": name, "arguments": arguments}
        return await asyncio.to_thread(remote.ask, str(home_folder()), self._caller, "tools/call", params)

    @cached_property
    def _turn_here(self) -> "asyncio.Lock":
        import asyncio

        return asyncio.Lock()

    @cached_property
    def _caller(self) -> dict[str, str]:
        """The headers that say where this client is, as a hook's do."""
        from hooks import envelope, project
        from service.place import caller_place

        named, folder = caller_place()
        found = project.identify(folder)
        headers = {envelope.PROJECT_KEY: envelope.quote(found.key if found else folder)}
        if found:
            headers[envelope.PROJECT] = envelope.quote(found.name)
        if named:
            headers[envelope.PROJECT_OVERRIDE] = envelope.quote(named)
        return headers


@asynccontextmanager
async def _opened_here(headers: dict[str, str]) -> AsyncIterator["Toolbox"]:
    """The tools on the database, for one call."""
    import asyncio

    from service.logs import logging_to
    from service.settings import load

    configuration = load()
    with logging_to(configuration.home):
        toolbox = await asyncio.to_thread(_open_here, configuration, headers)
        try:
            yield toolbox
            await toolbox.count_fetched()
        finally:
            await toolbox.edge.core.close()


def _open_here(configuration: "Configuration", headers: dict[str, str]) -> "Toolbox":
    from service.core import Core
    from service.edge.app import make_edge
    from service.edge.mcp import Toolbox, caller
    from service.edge.security import read_token

    core = Core.open(configuration, starts_vectors=False)
    edge = make_edge(core, read_token(configuration.home), has_workers=False)
    return Toolbox(edge=edge, caller=caller(headers))


def _list_here() -> list[Json]:
    from service.edge.tools import TOOLS

    return [tool.listed for tool in TOOLS.values()]
