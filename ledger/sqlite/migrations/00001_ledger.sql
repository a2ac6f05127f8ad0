-- The ledger. Times are microseconds since the Unix epoch; NULL is "not set". Zero texts, hashes and documents are NULL too.
-- Every rule of the ledger is said here a second time, for whoever writes past the program. RAISE(ABORT) undoes one statement
-- and leaves the transaction open. Chains of OR, because SQLite builds a temporary tree for an IN list at every execution.

-- +goose Up
CREATE TABLE agent_operations (
  id                    INTEGER PRIMARY KEY,
  key                   BLOB    NOT NULL UNIQUE,
  idempotency_key       TEXT    GENERATED ALWAYS AS ('v1:' || lower(hex(key))) VIRTUAL,
  operation_id          TEXT    NOT NULL UNIQUE,
  base_key              BLOB,
  tenant                TEXT    NOT NULL DEFAULT '',
  action_type           TEXT    NOT NULL,
  status                TEXT    NOT NULL,
  attempt_count         INTEGER NOT NULL DEFAULT 0,
  moves                 INTEGER NOT NULL, -- how many transitions it had; every write compares it and adds one
  identity              TEXT,
  workflow_id           TEXT,
  step                  TEXT,
  business_object       TEXT,
  revision              INTEGER NOT NULL DEFAULT 0,
  business_operation_id TEXT,
  run_id                TEXT,
  payload_hash          BLOB    NOT NULL, -- of the critical arguments: the fingerprint
  content_hash          BLOB,             -- of all arguments
  alike                 BLOB,             -- eight bytes of what look-alikes have in common
  field_hashes          BLOB,             -- of the single arguments: length, name and eight bytes for each
  amount                INTEGER NOT NULL DEFAULT 0, -- minor units
  currency              TEXT,
  provider              TEXT,
  provider_scope        TEXT,
  provider_key          TEXT,
  key_generation        INTEGER NOT NULL DEFAULT 0,
  provider_operation_id TEXT,
  provider_status       TEXT,
  last_error_code       TEXT,
  lease_owner           TEXT,
  lease_until           INTEGER,
  first_sent_at         INTEGER,
  unsettled_since       INTEGER,
  next_check_at         INTEGER,
  checks                INTEGER NOT NULL DEFAULT 0,
  expires_at            INTEGER,
  approval_state        TEXT,
  approval_reason       TEXT,
  approval_run          INTEGER NOT NULL DEFAULT 0, -- runs at once when approved
  review_opened_at      INTEGER,
  review_reason         TEXT,
  repeat_until          INTEGER,
  repeat_same_content   INTEGER NOT NULL DEFAULT 0,
  reserved              TEXT,             -- which limits' counts it is in while it may have its effect
  conflicts             INTEGER NOT NULL DEFAULT 0,
  pruned                INTEGER,          -- set in a tombstone: how many transitions went with the details
  created_at            INTEGER NOT NULL,
  updated_at            INTEGER NOT NULL,
  completed_at          INTEGER,
  actor                 TEXT,             -- who made the last transition,
  reason                TEXT,             -- why,
  evidence_json         TEXT,             -- and what proves it
  reference_json        TEXT,
  result_json           TEXT,
  chain                 BLOB,             -- proves the history and the row, to whoever has the secret

  CHECK (length(key) = 32 AND length(payload_hash) = 32),
  CHECK (base_key IS NULL OR (length(base_key) = 32 AND revision >= 1)),
  CHECK (content_hash IS NULL OR length(content_hash) = 32),
  CHECK (alike IS NULL OR length(alike) = 8),
  CHECK (chain IS NULL OR length(chain) = 32),
  CHECK (amount >= 0),
  CHECK (operation_id <> '' AND action_type <> ''),
  CHECK (identity IS NULL OR identity = 'strict' OR identity = 'workflow'),
  CHECK (attempt_count >= 0 AND moves >= 1),
  CHECK (status = 'planned' OR status = 'executing' OR status = 'succeeded' OR status = 'failed_retryable' OR status = 'failed_final' OR status = 'unknown'),
  CHECK (status <> 'planned' OR attempt_count = 0),
  CHECK (status <> 'executing' OR (attempt_count > 0 AND lease_owner IS NOT NULL AND lease_until IS NOT NULL AND provider_key IS NOT NULL AND first_sent_at IS NOT NULL)),
  CHECK (status <> 'succeeded' OR evidence_json IS NOT NULL OR pruned IS NOT NULL),
  CHECK ((status <> 'failed_retryable' AND status <> 'failed_final') OR last_error_code IS NOT NULL),
  CHECK (status <> 'failed_retryable' OR attempt_count > 0),
  CHECK (status <> 'unknown' OR review_opened_at IS NOT NULL OR next_check_at IS NOT NULL),
  CHECK (unsettled_since IS NULL OR status = 'executing' OR status = 'unknown'),
  CHECK (approval_state IS NULL OR approval_state = 'waiting' OR approval_state = 'approved' OR approval_state = 'spent' OR approval_state = 'denied' OR approval_state = 'expired'),
  CHECK (pruned IS NULL OR status = 'succeeded' OR status = 'failed_final')
) STRICT;

CREATE UNIQUE INDEX operation_revisions ON agent_operations (base_key, revision) WHERE base_key IS NOT NULL;
CREATE INDEX operation_workflows ON agent_operations (workflow_id, created_at) WHERE workflow_id IS NOT NULL;
CREATE INDEX operation_alikes ON agent_operations (alike, created_at) WHERE alike IS NOT NULL;
CREATE INDEX operation_checks ON agent_operations (next_check_at) WHERE next_check_at IS NOT NULL;
CREATE INDEX operation_reviews ON agent_operations (review_opened_at) WHERE review_opened_at IS NOT NULL;

-- A row exists as long as its operation is open. So this is also the list that the sweep reads. Kept apart because a row that
-- once was large leaves its page half empty for good.
CREATE TABLE sealed_payloads (
  operation INTEGER PRIMARY KEY,
  sealed    BLOB    NOT NULL
) STRICT;

CREATE TABLE history (
  operation   INTEGER NOT NULL,
  seq         INTEGER NOT NULL,
  from_status TEXT,
  to_status   TEXT    NOT NULL,
  attempt     INTEGER NOT NULL,
  reason      TEXT,
  evidence    TEXT,
  actor       TEXT,
  at          INTEGER NOT NULL,
  PRIMARY KEY (operation, seq)
) WITHOUT ROWID, STRICT;

CREATE VIEW transitions AS
  SELECT o.operation_id, h.seq, h.from_status, h.to_status, h.attempt, h.reason, h.evidence, h.actor, h.at
    FROM history h JOIN agent_operations o ON o.id = h.operation;

-- How much is taken of the limits. A bucket's name says which.
CREATE TABLE limit_usage (
  bucket TEXT PRIMARY KEY,
  used   INTEGER NOT NULL CHECK (used >= 0)
) WITHOUT ROWID, STRICT;

CREATE TABLE ledger_facts (
  name  TEXT PRIMARY KEY,
  value BLOB NOT NULL
) WITHOUT ROWID, STRICT;

-- INSERT OR REPLACE would delete the operation that is in the way, and no DELETE trigger fires for that.
-- +goose StatementBegin
CREATE TRIGGER operation_once BEFORE INSERT ON agent_operations
WHEN EXISTS (SELECT 1 FROM agent_operations WHERE key = NEW.key)
  OR EXISTS (SELECT 1 FROM agent_operations WHERE operation_id = NEW.operation_id)
  OR (NEW.id > 0 AND EXISTS (SELECT 1 FROM agent_operations WHERE id = NEW.id)) -- -1 where none was given
  OR (NEW.base_key IS NOT NULL AND EXISTS (SELECT 1 FROM agent_operations WHERE base_key = NEW.base_key AND revision = NEW.revision))
BEGIN SELECT RAISE(ABORT, 'onceward: this operation exists already'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER operation_starts AFTER INSERT ON agent_operations BEGIN
  SELECT RAISE(ABORT, 'onceward: an operation starts planned, or with its first attempt')
   WHERE NOT (NEW.moves = 1 AND NEW.unsettled_since IS NULL AND NEW.pruned IS NULL
     AND ((NEW.status = 'planned' AND NEW.attempt_count = 0) OR (NEW.status = 'executing' AND NEW.attempt_count = 1)));
  INSERT INTO history VALUES (NEW.id, 1, NULL, NEW.status, NEW.attempt_count, NEW.reason, NEW.evidence_json, NEW.actor, NEW.updated_at);
END;
-- +goose StatementEnd

-- A failure proves only its own attempt: from executing, unsettled_since is cleared by success alone; from unknown, by whatever
-- settled it, or by a person. It is set only when an attempt becomes unknown.
-- +goose StatementBegin
CREATE TRIGGER operation_moves AFTER UPDATE ON agent_operations WHEN NEW.pruned IS OLD.pruned BEGIN
  SELECT RAISE(ABORT, 'onceward: illegal move') WHERE NOT (
    NEW.moves = OLD.moves + 1
    AND ((NEW.attempt_count = OLD.attempt_count AND (
            NEW.status = OLD.status
         OR (OLD.status = 'executing' AND (NEW.status = 'succeeded' OR NEW.status = 'unknown' OR NEW.status = 'failed_retryable' OR NEW.status = 'failed_final'))
         OR (OLD.status = 'unknown' AND (NEW.status = 'succeeded' OR NEW.status = 'failed_final'))
         OR (OLD.status = 'failed_retryable' AND (NEW.status = 'succeeded' OR NEW.status = 'failed_final'))
         OR (OLD.status = 'planned' AND NEW.status = 'failed_final')
         OR (OLD.status = 'failed_final' AND (NEW.status = 'succeeded' OR (NEW.status = 'planned' AND OLD.attempt_count = 0)))))
      OR (NEW.attempt_count = OLD.attempt_count + 1 AND NEW.status = 'executing'
         AND (OLD.status = 'planned' OR OLD.status = 'failed_retryable' OR OLD.status = 'unknown')))
    AND (NEW.unsettled_since IS OLD.unsettled_since
      OR (NEW.status = 'unknown' AND OLD.unsettled_since IS NULL)
      OR (NEW.unsettled_since IS NULL AND (NEW.status = 'succeeded'
         OR (OLD.status = 'unknown' AND (NEW.status <> 'unknown' OR substr(NEW.actor, 1, 7) = 'person:'))))));
  INSERT INTO history VALUES (NEW.id, NEW.moves, OLD.status, NEW.status, NEW.attempt_count, NEW.reason, NEW.evidence_json, NEW.actor, NEW.updated_at);
END;
-- +goose StatementEnd

-- What a retry or a person needed goes in the commit that makes the operation final.
-- +goose StatementBegin
CREATE TRIGGER operation_ends AFTER UPDATE OF status ON agent_operations
WHEN (NEW.status = 'succeeded' OR NEW.status = 'failed_final') AND OLD.status <> 'succeeded' AND OLD.status <> 'failed_final'
BEGIN DELETE FROM sealed_payloads WHERE operation = NEW.id; END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER operation_pruned AFTER UPDATE OF pruned ON agent_operations WHEN NEW.pruned IS NOT OLD.pruned BEGIN
  SELECT RAISE(ABORT, 'onceward: this operation can not be pruned') WHERE NOT (
    OLD.pruned IS NULL AND NEW.pruned = OLD.moves AND NEW.moves = OLD.moves + 1
    AND (OLD.status = 'succeeded' OR OLD.status = 'failed_final') AND OLD.next_check_at IS NULL AND OLD.review_opened_at IS NULL
    AND NEW.status = OLD.status AND NEW.attempt_count = OLD.attempt_count AND NEW.updated_at = OLD.updated_at AND NEW.completed_at IS OLD.completed_at
    AND NEW.provider IS OLD.provider AND NEW.provider_operation_id IS OLD.provider_operation_id AND NEW.last_error_code IS OLD.last_error_code);
  DELETE FROM history WHERE operation = NEW.id;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER operation_identity BEFORE UPDATE OF id, key, operation_id, base_key, tenant, action_type, identity, revision, created_at ON agent_operations
BEGIN SELECT RAISE(ABORT, 'onceward: what an operation is never changes'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER operation_intent BEFORE UPDATE OF workflow_id, step, business_object, business_operation_id, run_id ON agent_operations
WHEN NOT (OLD.pruned IS NULL AND NEW.pruned IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'onceward: what an operation is for never changes'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER operation_fingerprint BEFORE UPDATE OF payload_hash ON agent_operations
WHEN NOT (OLD.status = 'failed_final' AND NEW.status = 'planned' AND OLD.attempt_count = 0 AND OLD.pruned IS NULL)
BEGIN SELECT RAISE(ABORT, 'onceward: the arguments of an operation never change'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER operation_arguments BEFORE UPDATE OF content_hash, alike, field_hashes, amount, currency ON agent_operations
WHEN NOT (OLD.pruned IS NULL AND ((OLD.status = 'failed_final' AND NEW.status = 'planned' AND OLD.attempt_count = 0) OR NEW.pruned IS NOT NULL))
BEGIN SELECT RAISE(ABORT, 'onceward: the arguments of an operation never change'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER operation_provider BEFORE UPDATE OF provider, provider_scope, provider_key, key_generation ON agent_operations
WHEN NOT ((OLD.pruned IS NULL AND NEW.pruned IS NOT NULL)
  OR (NEW.status = 'executing' AND OLD.status <> 'executing' AND NEW.key_generation >= OLD.key_generation)
  OR (NEW.provider_scope IS NULL AND NEW.provider IS OLD.provider AND NEW.provider_key IS OLD.provider_key
    AND NEW.key_generation = OLD.key_generation AND substr(NEW.actor, 1, 7) = 'person:'))
BEGIN SELECT RAISE(ABORT, 'onceward: only a claim says where an operation goes, and only a person lets it go elsewhere'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER operation_kept BEFORE DELETE ON agent_operations
BEGIN SELECT RAISE(ABORT, 'onceward: operations are never forgotten'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER payload_needed BEFORE INSERT ON sealed_payloads
WHEN EXISTS (SELECT 1 FROM sealed_payloads WHERE operation = NEW.operation)
  OR NOT EXISTS (SELECT 1 FROM agent_operations WHERE id = NEW.operation AND status <> 'succeeded' AND status <> 'failed_final')
BEGIN SELECT RAISE(ABORT, 'onceward: only an open operation keeps a payload, and only one'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER payload_kept BEFORE DELETE ON sealed_payloads
WHEN EXISTS (SELECT 1 FROM agent_operations WHERE id = OLD.operation AND status <> 'succeeded' AND status <> 'failed_final')
BEGIN SELECT RAISE(ABORT, 'onceward: an open operation keeps its payload'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER payload_fixed BEFORE UPDATE ON sealed_payloads
BEGIN SELECT RAISE(ABORT, 'onceward: every attempt sends the same payload'); END;
-- +goose StatementEnd

-- OR REPLACE reaches into triggers, so the primary key alone does not protect a line.
-- +goose StatementBegin
CREATE TRIGGER history_appended BEFORE INSERT ON history
WHEN EXISTS (SELECT 1 FROM history WHERE operation = NEW.operation AND seq = NEW.seq)
  OR NOT EXISTS (SELECT 1 FROM agent_operations WHERE id = NEW.operation AND moves = NEW.seq)
BEGIN SELECT RAISE(ABORT, 'onceward: the history is append-only'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER history_fixed BEFORE UPDATE ON history
BEGIN SELECT RAISE(ABORT, 'onceward: the history is append-only'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER history_kept BEFORE DELETE ON history
WHEN NOT EXISTS (SELECT 1 FROM agent_operations WHERE id = OLD.operation AND pruned >= OLD.seq)
BEGIN SELECT RAISE(ABORT, 'onceward: the history is append-only'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER fact_once BEFORE INSERT ON ledger_facts WHEN EXISTS (SELECT 1 FROM ledger_facts WHERE name = NEW.name)
BEGIN SELECT RAISE(ABORT, 'onceward: a fact never changes'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER fact_fixed BEFORE UPDATE ON ledger_facts
BEGIN SELECT RAISE(ABORT, 'onceward: a fact never changes'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER fact_kept BEFORE DELETE ON ledger_facts
BEGIN SELECT RAISE(ABORT, 'onceward: a fact never changes'); END;
-- +goose StatementEnd

-- +goose Down
SELECT RAISE(ABORT, 'onceward: a ledger is never taken down');
