-- The pipeline, top to bottom: an event becomes a row of pending_messages, a consumer claims it and turns it into
-- observations and summaries. Times are integer milliseconds since the epoch, UTC; *_at_epoch of things that happened
-- is the moment the client's hook ran. Lists are JSON arrays.

CREATE TABLE projects (
    name             TEXT PRIMARY KEY,        -- what people see and filter by; never changes
    key              TEXT UNIQUE,             -- normalised origin URL, git common dir or folder; NULL: made by name alone
    created_at_epoch INTEGER NOT NULL
) STRICT;

CREATE TABLE project_folders (                -- where a folder belonged when it was last seen
    folder  TEXT PRIMARY KEY,
    project TEXT NOT NULL REFERENCES projects (name)
) STRICT;

CREATE TABLE sessions (
    id                  INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id          TEXT NOT NULL UNIQUE, -- the client's own
    project             TEXT NOT NULL REFERENCES projects (name),
    platform            TEXT NOT NULL,
    cwd                 TEXT NOT NULL DEFAULT '',
    status              TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'closed')),
    prompt_count        INTEGER NOT NULL DEFAULT 0,
    unsummarised        INTEGER NOT NULL DEFAULT 0, -- messages and prompts since the last summary message
    due_at_epoch        INTEGER,              -- when its waiting messages are to be claimed; NULL: nothing waits
    started_at_epoch    INTEGER NOT NULL,
    last_event_at_epoch INTEGER NOT NULL,     -- captured time
    last_seen_epoch     INTEGER NOT NULL,     -- arrival
    ended_at_epoch      INTEGER
) STRICT;
CREATE INDEX sessions_due ON sessions (due_at_epoch) WHERE due_at_epoch IS NOT NULL;
CREATE INDEX sessions_open ON sessions (id) WHERE status = 'active';
CREATE INDEX sessions_project ON sessions (project);

CREATE TABLE private_turns (                  -- turns whose events leave nothing
    session_id       TEXT NOT NULL,
    client_prompt_id TEXT,
    from_epoch       INTEGER NOT NULL,
    until_epoch      INTEGER                  -- NULL: the next prompt has not come
) STRICT;
CREATE INDEX private_turns_session ON private_turns (session_id);

CREATE TABLE user_prompts (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    event_key        TEXT NOT NULL UNIQUE,
    session_id       TEXT NOT NULL REFERENCES sessions (session_id),
    project          TEXT NOT NULL REFERENCES projects (name),
    prompt_number    INTEGER NOT NULL,        -- 1, 2, … within the session
    client_prompt_id TEXT,
    text             TEXT NOT NULL,
    search_extra     TEXT NOT NULL DEFAULT '',
    created_at_epoch INTEGER NOT NULL
) STRICT;
CREATE INDEX user_prompts_session ON user_prompts (session_id, created_at_epoch);
CREATE INDEX user_prompts_time ON user_prompts (created_at_epoch);
CREATE INDEX user_prompts_project ON user_prompts (project, created_at_epoch);

CREATE TABLE pending_messages (
    id                INTEGER PRIMARY KEY AUTOINCREMENT,
    event_key         TEXT NOT NULL UNIQUE,   -- idempotency key, from the client's own ids
    session_id        TEXT NOT NULL REFERENCES sessions (session_id),
    project           TEXT NOT NULL REFERENCES projects (name),
    message_type      TEXT NOT NULL CHECK (message_type IN ('observation', 'summary')),
    hook_event        TEXT NOT NULL,
    tool_name         TEXT,
    subject           TEXT,                   -- the file that was read; reading it again is noise
    client_prompt_id  TEXT,
    agent_id          TEXT,
    has_payload       INTEGER NOT NULL DEFAULT 1, -- 0 after retention
    payload_bytes     INTEGER NOT NULL,       -- as it came in, before cleaning
    tokens            INTEGER NOT NULL,       -- estimate of the cleaned payload
    state             TEXT NOT NULL DEFAULT 'pending'
                      CHECK (state IN ('pending', 'processing', 'done', 'skipped', 'failed')),
    reason            TEXT,                   -- why skipped or failed
    error             TEXT,                   -- last error, for people
    attempts          INTEGER NOT NULL DEFAULT 0, -- answers that were bad for this message
    crashes           INTEGER NOT NULL DEFAULT 0, -- leases that lapsed
    replays           INTEGER NOT NULL DEFAULT 0,
    claim_no          INTEGER NOT NULL DEFAULT 0, -- fencing token: grows with every claim, never reset
    claimed_by        TEXT,
    lease_until_epoch INTEGER,
    not_before_epoch  INTEGER NOT NULL DEFAULT 0,
    captured_at_epoch INTEGER NOT NULL,
    created_at_epoch  INTEGER NOT NULL,       -- arrival
    finished_at_epoch INTEGER,
    CHECK ((state = 'processing') = (lease_until_epoch IS NOT NULL))
) STRICT;
CREATE INDEX pending_messages_queue ON pending_messages (state, session_id, captured_at_epoch, created_at_epoch);
CREATE INDEX pending_messages_subject ON pending_messages (session_id, subject) WHERE subject IS NOT NULL;
CREATE INDEX pending_messages_finished ON pending_messages (finished_at_epoch)
    WHERE finished_at_epoch IS NOT NULL AND has_payload;

CREATE TABLE message_payloads (               -- apart from the queue, whose rows are rewritten with every change of state
    message_id INTEGER PRIMARY KEY REFERENCES pending_messages (id),
    payload    TEXT NOT NULL                  -- JSON, cleaned
) STRICT;
CREATE TRIGGER pending_messages_drop_payload AFTER UPDATE OF has_payload ON pending_messages WHEN NOT new.has_payload BEGIN
    DELETE FROM message_payloads WHERE message_id = new.id;
END;

CREATE TABLE observations (
    id                 INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id         TEXT REFERENCES sessions (session_id), -- NULL: remembered outside any session
    project            TEXT NOT NULL REFERENCES projects (name),
    type               TEXT NOT NULL,
    title              TEXT NOT NULL,
    subtitle           TEXT NOT NULL DEFAULT '',
    narrative          TEXT NOT NULL DEFAULT '',
    facts              TEXT NOT NULL DEFAULT '[]',
    concepts           TEXT NOT NULL DEFAULT '[]',
    files_read         TEXT NOT NULL DEFAULT '[]',
    files_modified     TEXT NOT NULL DEFAULT '[]',
    search_extra       TEXT NOT NULL DEFAULT '', -- for the text index only: split identifiers, CJK bigrams
    prompt_number      INTEGER,
    discovery_tokens   INTEGER NOT NULL DEFAULT 0,
    content_hash       TEXT NOT NULL,
    repeats            INTEGER NOT NULL DEFAULT 0, -- how often the same content came again within the window
    source_message_ids TEXT NOT NULL DEFAULT '[]',
    metadata           TEXT NOT NULL DEFAULT '{}',
    created_at_epoch   INTEGER NOT NULL,      -- captured time of its newest source
    stored_at_epoch    INTEGER NOT NULL
) STRICT;
CREATE INDEX observations_hash ON observations (content_hash, created_at_epoch);
CREATE INDEX observations_session ON observations (session_id, id);
CREATE INDEX observations_project ON observations (project, created_at_epoch);
CREATE INDEX observations_time ON observations (created_at_epoch);

CREATE TABLE session_summaries (
    id                 INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id         TEXT NOT NULL REFERENCES sessions (session_id),
    project            TEXT NOT NULL REFERENCES projects (name),
    request            TEXT NOT NULL DEFAULT '',
    investigated       TEXT NOT NULL DEFAULT '',
    learned            TEXT NOT NULL DEFAULT '',
    completed          TEXT NOT NULL DEFAULT '',
    next_steps         TEXT NOT NULL DEFAULT '',
    files_read         TEXT NOT NULL DEFAULT '[]',
    files_edited       TEXT NOT NULL DEFAULT '[]',
    notes              TEXT NOT NULL DEFAULT '',
    search_extra       TEXT NOT NULL DEFAULT '',
    prompt_number      INTEGER,
    discovery_tokens   INTEGER NOT NULL DEFAULT 0,
    source_message_ids TEXT NOT NULL DEFAULT '[]',
    created_at_epoch   INTEGER NOT NULL,
    stored_at_epoch    INTEGER NOT NULL
) STRICT;
CREATE INDEX session_summaries_session ON session_summaries (session_id, id);
CREATE INDEX session_summaries_time ON session_summaries (created_at_epoch);
CREATE INDEX session_summaries_project ON session_summaries (project, created_at_epoch);

CREATE TABLE observation_feedback (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    observation_id   INTEGER NOT NULL REFERENCES observations (id) ON DELETE CASCADE,
    signal_type      TEXT NOT NULL CHECK (signal_type IN ('viewed', 'fetched', 'cited')),
    created_at_epoch INTEGER NOT NULL
) STRICT;
CREATE INDEX observation_feedback_observation ON observation_feedback (observation_id);

CREATE TABLE outbox (                         -- what /stream tells; written in the transaction that changed the row
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    event            TEXT NOT NULL,           -- observation, summary, prompt, queue, health
    data             TEXT NOT NULL,           -- JSON
    created_at_epoch INTEGER NOT NULL
) STRICT;

CREATE TABLE not_queued (                     -- events that left no row, by reason
    reason TEXT PRIMARY KEY,
    count  INTEGER NOT NULL
) STRICT;

CREATE TABLE provider_state (                 -- one row a provider that is paused or failing; '*' is a person's pause
    provider            TEXT PRIMARY KEY,
    reason              TEXT,                 -- NULL: not paused
    message             TEXT NOT NULL DEFAULT '',
    paused_at_epoch     INTEGER,
    until_epoch         INTEGER,              -- NULL while paused: until someone resumes or settings change
    step                INTEGER NOT NULL DEFAULT 0, -- of the backoff
    failures            INTEGER NOT NULL DEFAULT 0, -- in a row
    first_failure_epoch INTEGER,
    last_error          TEXT
) STRICT;

CREATE TABLE spend (                          -- per UTC day; the daily budget
    day           TEXT NOT NULL,
    provider      TEXT NOT NULL,
    calls         INTEGER NOT NULL DEFAULT 0,
    input_tokens  INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (day, provider)
) STRICT;
