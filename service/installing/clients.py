"""The clients that Gapless can be installed for."""

from service.installing.claude_code import CLAUDE_CODE
from service.installing.codex import CODEX
from service.installing.cursor import CURSOR
from service.installing.gemini import GEMINI
from service.installing.opencode import OPENCODE
from service.installing.program import Client

CLIENTS: dict[str, Client] = {client.name: client for client in (CLAUDE_CODE, CODEX, GEMINI, CURSOR, OPENCODE)}
