// Gapless for opencode: hands the events of every session to the hook and its notes to the model.
// Written by `gapless install --client opencode`; `gapless uninstall --client opencode` removes it.

import { spawn } from "node:child_process"

const serverName = "NAME"
const hook = ["HOOK"]
const server = ["SERVER"]
const environment = {"ENVIRONMENT": ""}
const LIMIT_MS = 10_000

// Runs the hook with one event; what it says, or "" whatever goes wrong: memory is never the host's problem.
function tell(event) {
  return new Promise((resolve) => {
    let said = ""
    const child = spawn(hook[0], hook.slice(1), { stdio: ["pipe", "pipe", "ignore"], timeout: LIMIT_MS })
    child.on("error", () => resolve(""))
    child.on("close", () => resolve(said))
    child.stdout.on("data", (part) => (said += part))
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(event))
  })
}

function contextIn(said) {
  try {
    return JSON.parse(said).hookSpecificOutput.additionalContext
  } catch {
    return ""
  }
}

function textOf(parts) {
  return parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text).join("\n")
}

// One export: opencode takes each for a plugin.
export const Gapless = async ({ client, directory }) => {
  const started = new Map() // session id -> promise of the notes it begins with
  const parents = new Map() // session id of a subagent -> session it works for
  const prompts = new Map() // session id -> id of its newest prompt

  const event = (session, name, fields) => ({
    hook_event_name: name,
    session_id: parents.get(session) ?? session,
    cwd: directory,
    prompt_id: prompts.get(parents.get(session) ?? session),
    ...(parents.has(session) ? { agent_id: session } : {}),
    ...fields,
  })

  const start = (session, source) => {
    if (!started.has(session)) started.set(session, tell(event(session, "SessionStart", { source })).then(contextIn))
    return started.get(session)
  }

  const lastMessage = async (session) => {
    try {
      const { data } = await client.session.messages({ path: { id: session } })
      const answers = data.filter((message) => message.info.role === "assistant").reverse()
      return answers.map((message) => textOf(message.parts)).find(Boolean) ?? ""
    } catch {
      return ""
    }
  }

  return {
    config: async (config) => {
      config.mcp = { [serverName]: { type: "local", command: server, environment, enabled: true }, ...config.mcp }
    },
    event: async ({ event: { type, properties } }) => {
      if (type === "session.created") {
        if (properties.info.parentID) parents.set(properties.info.id, properties.info.parentID)
        else start(properties.info.id, "startup")
      } else if (type === "session.idle") {
        const session = properties.sessionID
        const last_assistant_message = await lastMessage(session)
        await tell(event(session, parents.has(session) ? "SubagentStop" : "Stop", { last_assistant_message }))
      } else if (type === "session.deleted") {
        await tell(event(properties.info.id, "SessionEnd", { reason: "other" }))
      }
    },
    "chat.message": async ({ sessionID, messageID }, { message, parts }) => {
      if (parents.has(sessionID)) return
      await start(sessionID, "resume")
      prompts.set(sessionID, messageID ?? message.id)
      await tell(event(sessionID, "UserPromptSubmit", { prompt: textOf(parts) }))
    },
    "tool.execute.after": async ({ tool, sessionID, callID, args }, { output }) => {
      const fields = { tool_name: tool, tool_input: args, tool_use_id: callID, tool_response: output }
      await tell(event(sessionID, "PostToolUse", fields))
    },
    "experimental.session.compacting": async ({ sessionID }) => {
      await tell(event(sessionID, "PreCompact", { trigger: "auto" }))
    },
    "experimental.chat.system.transform": async ({ sessionID }, { system }) => {
      const notes = await started.get(sessionID)
      if (notes) system.push(notes)
    },
  }
}
