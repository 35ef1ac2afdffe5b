-- Recall: what a person says of a memory, what was forgotten, and the vector index with the change sequence it follows.

ALTER TABLE observations ADD COLUMN layer TEXT NOT NULL DEFAULT 'L3'; -- L1 identity, L2 project, L3 session, L4 transient
ALTER TABLE observations ADD COLUMN tags TEXT NOT NULL DEFAULT '[]';
ALTER TABLE observations ADD COLUMN keywords TEXT NOT NULL DEFAULT '[]';
ALTER TABLE observations ADD COLUMN confidence REAL NOT NULL DEFAULT 1.0;
ALTER TABLE observations ADD COLUMN expires_at_epoch INTEGER;
ALTER TABLE observations ADD COLUMN text_hash TEXT; -- of a text that was remembered word for word; NULL: made from events
CREATE INDEX observations_text ON observations (project, text_hash) WHERE text_hash IS NOT NULL;
CREATE INDEX observations_expiry ON observations (expires_at_epoch) WHERE expires_at_epoch IS NOT NULL;
CREATE INDEX observations_remembered ON observations (project, layer, created_at_epoch) WHERE layer IN ('L1', 'L2');

ALTER TABLE sessions ADD COLUMN forgotten_at_epoch INTEGER; -- lists leave it out until it has an event again

CREATE TABLE injected (                       -- what a session was given, and still has in its context window
    session_id TEXT NOT NULL,
    item       TEXT NOT NULL,                 -- start- and its source; the id of an observation; file- and the hash of a path
    at_epoch   INTEGER NOT NULL,
    PRIMARY KEY (session_id, item)
) STRICT, WITHOUT ROWID;
CREATE INDEX injected_time ON injected (at_epoch);

CREATE TABLE forgotten (                      -- keys of events whose rows are gone: they don't come back
    event_key          TEXT PRIMARY KEY,
    forgotten_at_epoch INTEGER NOT NULL
) STRICT;

CREATE TABLE changes (                        -- every record once, at the number of its last insert, edit or delete
    seq       INTEGER PRIMARY KEY AUTOINCREMENT,
    doc_type  TEXT NOT NULL CHECK (doc_type IN ('observation', 'session_summary', 'user_prompt')),
    record_id INTEGER NOT NULL,
    UNIQUE (doc_type, record_id)
) STRICT;

CREATE TABLE watermarks (                     -- how far an index has come, and what holds it up
    name           TEXT PRIMARY KEY,
    seq            INTEGER NOT NULL DEFAULT 0, -- every change up to it is in the index, or one of its gaps
    index_id       TEXT NOT NULL DEFAULT '',  -- the very index it speaks of; another one begins at 0
    model          TEXT NOT NULL DEFAULT '',  -- that made the vectors
    failures       INTEGER NOT NULL DEFAULT 0, -- of the index as a whole, in a row
    error          TEXT,                      -- the last of them
    failing_epoch  INTEGER,                   -- when they began
    retry_at_epoch INTEGER,                   -- nothing is tried before
    seen_at_epoch  INTEGER                    -- when the index was last found whole; NULL: not since the workers began
) STRICT;

CREATE TABLE gaps (                           -- records behind the mark that could not be indexed
    doc_type           TEXT NOT NULL,
    record_id          INTEGER NOT NULL,
    attempts           INTEGER NOT NULL,
    error              TEXT NOT NULL,
    not_before_epoch   INTEGER,               -- when it is tried again; NULL: given up
    first_failed_epoch INTEGER NOT NULL,
    PRIMARY KEY (doc_type, record_id)
) STRICT;
CREATE INDEX gaps_due ON gaps (not_before_epoch) WHERE not_before_epoch IS NOT NULL;

CREATE TABLE embeddings (                     -- the vectors themselves: what Chroma holds is made from these
    id        INTEGER PRIMARY KEY AUTOINCREMENT, -- a vector that is made anew takes the next
    doc_type  TEXT NOT NULL,
    record_id INTEGER NOT NULL,
    part      TEXT NOT NULL,                  -- narrative, fact_0, fact_1, …
    project   TEXT NOT NULL,
    model     TEXT NOT NULL,
    text_hash TEXT NOT NULL,                  -- of the text that was embedded
    vector    BLOB NOT NULL,                  -- float32, little-endian, of length 1
    UNIQUE (doc_type, record_id, part)
) STRICT;
CREATE INDEX embeddings_project ON embeddings (project, doc_type);

CREATE TRIGGER observations_changed_insert AFTER INSERT ON observations BEGIN
    INSERT OR REPLACE INTO changes (doc_type, record_id) VALUES ('observation', new.id);
END;
CREATE TRIGGER observations_changed_update
    AFTER UPDATE OF project, type, title, subtitle, narrative, facts, created_at_epoch ON observations BEGIN
    INSERT OR REPLACE INTO changes (doc_type, record_id) VALUES ('observation', new.id);
END;
CREATE TRIGGER observations_changed_delete AFTER DELETE ON observations BEGIN
    INSERT OR REPLACE INTO changes (doc_type, record_id) VALUES ('observation', old.id);
    DELETE FROM embeddings WHERE doc_type = 'observation' AND record_id = old.id;
END;
CREATE TRIGGER session_summaries_changed_insert AFTER INSERT ON session_summaries BEGIN
    INSERT OR REPLACE INTO changes (doc_type, record_id) VALUES ('session_summary', new.id);
END;
CREATE TRIGGER session_summaries_changed_update AFTER UPDATE ON session_summaries BEGIN
    INSERT OR REPLACE INTO changes (doc_type, record_id) VALUES ('session_summary', new.id);
END;
CREATE TRIGGER session_summaries_changed_delete AFTER DELETE ON session_summaries BEGIN
    INSERT OR REPLACE INTO changes (doc_type, record_id) VALUES ('session_summary', old.id);
    DELETE FROM embeddings WHERE doc_type = 'session_summary' AND record_id = old.id;
END;
CREATE TRIGGER user_prompts_changed_insert AFTER INSERT ON user_prompts BEGIN
    INSERT OR REPLACE INTO changes (doc_type, record_id) VALUES ('user_prompt', new.id);
END;
CREATE TRIGGER user_prompts_changed_update AFTER UPDATE OF project, text, created_at_epoch ON user_prompts BEGIN
    INSERT OR REPLACE INTO changes (doc_type, record_id) VALUES ('user_prompt', new.id);
END;
CREATE TRIGGER user_prompts_changed_delete AFTER DELETE ON user_prompts BEGIN
    INSERT OR REPLACE INTO changes (doc_type, record_id) VALUES ('user_prompt', old.id);
    DELETE FROM embeddings WHERE doc_type = 'user_prompt' AND record_id = old.id;
END;

INSERT INTO changes (doc_type, record_id) SELECT 'observation', id FROM observations ORDER BY id;
INSERT INTO changes (doc_type, record_id) SELECT 'session_summary', id FROM session_summaries ORDER BY id;
INSERT INTO changes (doc_type, record_id) SELECT 'user_prompt', id FROM user_prompts ORDER BY id;
