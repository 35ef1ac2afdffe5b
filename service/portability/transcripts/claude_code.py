"""Transcripts of Claude Code: a line a content block, subagents in the same file or in their own."""

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from service.portability.transcripts.recording import (
    Record,
    Telling,
    Transcript,
    at_of,
    items,
    mapping,
    records,
    text_of,
)

PLATFORM = "claude-code"
NOT_SAID = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")
"""Lines of the user's that no user wrote."""
INTERRUPTED = "[Request interrupted by user"
NO_PROMPT = re.compile(
    r"\s*(?:<(?:local-command-|bash-|command-contents|system-reminder|teammate-message|user-prompt-submit-hook)"
    r"|Caveat: The messages below|API Error)"
)
COMMAND = re.compile(r"<command-name>\s*/?(.*?)\s*</command-name>", re.DOTALL)
ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
NEVER_RAN = re.compile(
    r"\s*(?:<tool_use_error>|\[Request interrupted|The user doesn't want|Permission |Claude requested permission"
    r"|User rejected|Cancelled: parallel|Sibling tool call errored|Hook PreToolUse|PreToolUse:"
    r"|Error: (?:No such tool|Tool \S+ not found))"
)
"""Results of calls that were refused, cut off or unknown: no hook tells of them."""


@dataclass(slots=True)
class Agent:
    type: str = ""
    said: str = ""
    last_at: int = 0


@dataclass(slots=True)
class Reading:
    telling: Telling
    is_agent_s: bool
    """The file holds one subagent alone; its session is told elsewhere."""
    uses: dict[str, Record] = field(default_factory=dict)
    results: set[str] = field(default_factory=set)
    agents: dict[str, Agent] = field(default_factory=dict)

    def read(self, record: Record, following: Record) -> None:
        at = at_of(record)
        if at is None:
            return
        self.telling.cwd = record.get("cwd") or self.telling.cwd
        match record.get("type"):
            case "assistant":
                self.assistant(record, at, self._agent(record))
            case "user":
                self.user(record, following, at)
            case "progress":
                self.progress(mapping(record.get("data")), record, at)
            case "system":
                self.system(record, at)

    def assistant(self, record: Record, at: int, agent: tuple[str, str] | None) -> None:
        message = mapping(record.get("message"))
        text = text_of(message.get("content"))
        if agent is not None:
            self._hear(agent, text, at)
        elif message.get("model") != "<synthetic>":
            self.telling.say(text, at)
        for block in map(mapping, items(message.get("content"))):
            if block.get("type") == "tool_use" and isinstance(block.get("id"), str):
                self.uses.setdefault(block["id"], block)

    def user(self, record: Record, following: Record, at: int) -> None:
        content = mapping(record.get("message")).get("content")
        results = [block for block in map(mapping, items(content)) if block.get("type") == "tool_result"]
        if results:
            for block in results:
                self.result(block, record, at, self._agent(record), whole=len(results) == 1)
            return
        text = text_of(content)
        if self._agent(record) is not None or any(record.get(mark) for mark in NOT_SAID):
            return
        if text.lstrip().startswith(INTERRUPTED):
            self.telling.interrupt()
        elif (prompt := _prompt(text, following)) is not None:
            self.telling.prompt(prompt, at, str(record.get("promptId") or record.get("uuid") or at))

    def result(self, block: Record, record: Record, at: int, agent: tuple[str, str] | None, *, whole: bool) -> None:
        use_id = block.get("tool_use_id")
        if not isinstance(use_id, str) or use_id in self.results:
            return
        self.results.add(use_id)
        use = self.uses.get(use_id, {})
        fields: Record = {"tool_name": use.get("name") or "?", "tool_input": use.get("input"), "tool_use_id": use_id}
        if agent is not None:
            fields |= {"agent_id": agent[0]} | ({"agent_type": agent[1]} if agent[1] else {})
            self._hear(agent, "", at)
        content = block.get("content")
        if block.get("is_error"):
            said = text_of(content)
            if not NEVER_RAN.match(said):
                self.telling.tell("PostToolUseFailure", at, use_id, **fields, error=said, is_interrupt=False)
            return
        response = record.get("toolUseResult") if whole else None
        self.telling.tell("PostToolUse", at, use_id, **fields, tool_response=content if response is None else response)
        self._report(use, mapping(response), at)

    def progress(self, data: Record, record: Record, at: int) -> None:
        """Older clients kept a subagent's messages in the session's file."""
        if data.get("type") != "agent_progress":
            return
        inner = mapping(data.get("message"))
        agent_id = data.get("agentId") or record.get("parentToolUseID") or "agent"
        asked = mapping(self.uses.get(str(record.get("parentToolUseID")), {}).get("input"))
        agent = (str(agent_id), str(asked.get("subagent_type") or ""))
        at = at_of(inner) or at
        if inner.get("type") == "assistant":
            self.assistant(inner, at, agent)
        elif inner.get("type") == "user":
            for block in map(mapping, items(mapping(inner.get("message")).get("content"))):
                if block.get("type") == "tool_result":
                    self.result(block, inner, at, agent, whole=True)

    def system(self, record: Record, at: int) -> None:
        if self._agent(record) is not None:
            return
        if record.get("subtype") == "compact_boundary":
            trigger = mapping(record.get("compactMetadata")).get("trigger", "auto")
            self.telling.tell("PreCompact", at, str(record.get("uuid") or at), trigger=trigger)
        elif record.get("subtype") in ("stop_hook_summary", "turn_duration"):
            self.telling.stop(at)

    def finish(self) -> None:
        for agent_id, agent in self.agents.items():
            if agent.said and agent_id != "sidechain":
                words = {"agent_id": agent_id, "agent_type": agent.type, "last_assistant_message": agent.said}
                self.telling.tell("SubagentStop", agent.last_at, agent_id, stop_hook_active=False, **words)

    def _agent(self, record: Record) -> tuple[str, str] | None:
        if not (self.is_agent_s or record.get("isSidechain")):
            return None
        return str(record.get("agentId") or "sidechain"), str(record.get("attributionAgent") or "")

    def _hear(self, agent: tuple[str, str], text: str, at: int) -> None:
        heard = self.agents.setdefault(agent[0], Agent())
        heard.type, heard.said = heard.type or agent[1], text or heard.said
        heard.last_at = max(heard.last_at, at)

    def _report(self, use: Record, response: Record, at: int) -> None:
        """The answer of a subagent's call says what it said last, also where its own lines are missing."""
        if use.get("name") in ("Task", "Agent") and isinstance(response.get("agentId"), str):
            kind = str(mapping(use.get("input")).get("subagent_type") or "")
            self._hear((response["agentId"], kind), text_of(response.get("content")), at)


def read(path: Path) -> Transcript:
    unusable: list[str] = []
    whole = [record for _, record in records(path, unusable)]
    ids = Counter(record["sessionId"] for record in whole if isinstance(record.get("sessionId"), str))
    name = path.name.split(".")[0]
    is_agent_s = name.startswith("agent-") and all(
        record.get("isSidechain", True) for record in whole if record.get("type") in ("user", "assistant")
    )
    first_folder = next((record["cwd"] for record in whole if record.get("cwd")), "")
    telling = Telling(session_id=ids.most_common(1)[0][0] if ids else name, cwd=str(first_folder))
    reading = Reading(telling, is_agent_s)
    own = _once(whole)
    for record, following in zip(own, [*own[1:], {}], strict=True):
        reading.read(record, following)
    if not is_agent_s:
        telling.stop()
    reading.finish()
    times = [at for record in whole if (at := at_of(record)) is not None]
    return telling.ended(PLATFORM, unusable, started_at=min(times) if times and not is_agent_s else None)


def _once(whole: list[Record]) -> list[Record]:
    """Without the lines that a resumed or forked session repeats."""
    kept: dict[str, Record] = {}
    for place, record in enumerate(whole):
        kept.setdefault(str(record.get("uuid") or place), record)
    return list(kept.values())


def _prompt(text: str, following: Record) -> str | None:
    """What the user sent; of a slash command its line. A command that the client answers itself has no expansion."""
    command = COMMAND.search(text)
    if command is not None:
        arguments = ARGUMENTS.search(text)
        line = f"/{command[1]} {arguments[1] if arguments else ''}".strip()
        return line if following.get("isMeta") and following.get("type") == "user" else None
    return text if text.strip() and not NO_PROMPT.match(text) else None
