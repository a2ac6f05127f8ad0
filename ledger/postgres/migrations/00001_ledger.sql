-- The ledger. NULL is "not set"; zero texts, hashes and documents are NULL too. Documents are text, not jsonb: what proves them
-- is made over their bytes. Columns stand in the order that wastes the least room. Indexed texts are compared byte by byte, which
-- is fast and doesn't change with the operating system's locales.
-- Every rule of the ledger is said here a second time, for whoever writes past the program. What is refused has SQLSTATE OW001;
-- OW002 says that a write was decided on what is no longer so.

-- +goose Up
CREATE TABLE agent_operations (
  id                    bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  token                 bigint      NOT NULL DEFAULT 0, -- which write made the last move, known to its writer alone
  created_at            timestamptz NOT NULL,
  updated_at            timestamptz NOT NULL,
  completed_at          timestamptz,
  lease_until           timestamptz,
  first_sent_at         timestamptz,
  unsettled_since       timestamptz,
  next_check_at         timestamptz,
  expires_at            timestamptz,
  review_opened_at      timestamptz,
  repeat_until          timestamptz,
  amount                bigint      NOT NULL DEFAULT 0, -- minor units
  attempt_count         integer     NOT NULL DEFAULT 0,
  moves                 integer     NOT NULL, -- how many transitions it had; every write compares it and adds one
  revision              integer     NOT NULL DEFAULT 0,
  key_generation        integer     NOT NULL DEFAULT 0,
  checks                integer     NOT NULL DEFAULT 0,
  conflicts             integer     NOT NULL DEFAULT 0,
  pruned                integer,                      -- set in a tombstone: how many transitions went with the details
  approval_run          boolean     NOT NULL DEFAULT false, -- runs at once when approved
  repeat_same_content   boolean     NOT NULL DEFAULT false,
  idempotency_key       text        COLLATE "C" NOT NULL UNIQUE,
  operation_id          text        COLLATE "C" NOT NULL UNIQUE,
  base_key              bytea,
  tenant                text        COLLATE "C" NOT NULL DEFAULT '',
  action_type           text        COLLATE "C" NOT NULL,
  status                text        COLLATE "C" NOT NULL,
  identity              text        COLLATE "C",
  workflow_id           text        COLLATE "C",
  step                  text        COLLATE "C",
  business_object       text        COLLATE "C",
  business_operation_id text        COLLATE "C",
  run_id                text        COLLATE "C",
  payload_hash          bytea       NOT NULL,         -- of the critical arguments: the fingerprint
  content_hash          bytea,                        -- of all arguments
  alike                 bytea,                        -- eight bytes of what look-alikes have in common
  field_hashes          bytea,                        -- of the single arguments: length, name and eight bytes for each
  currency              text        COLLATE "C",
  provider              text        COLLATE "C",
  provider_scope        text        COLLATE "C",
  provider_key          text        COLLATE "C",
  provider_operation_id text        COLLATE "C",
  provider_status       text        COLLATE "C",
  last_error_code       text        COLLATE "C",
  lease_owner           text        COLLATE "C",
  approval_state        text        COLLATE "C",
  approval_reason       text        COLLATE "C",
  review_reason         text        COLLATE "C",
  reserved              text        COLLATE "C",      -- which limits' counts it is in while it may have its effect
  actor                 text        COLLATE "C",      -- who made the last transition,
  reason                text        COLLATE "C",      -- why,
  evidence_json         text        COLLATE "C",      -- and what proves it
  reference_json        text        COLLATE "C",
  result_json           text        COLLATE "C",
  chain                 bytea                         -- proves the history and the row, to whoever has the secret
) WITH (fillfactor = 80); -- so that an outcome fits beside its claim, and no index has to know

-- What every row is, also one that comes past the triggers. It is one function, for PostgreSQL makes each CHECK ready anew for each
-- statement: as twenty CHECKs, this takes longer than all the rest of a write.
-- +goose StatementBegin
CREATE FUNCTION operation_is_sound(o agent_operations) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN o.idempotency_key ~ '^v1:[0-9a-f]{64}$' AND o.operation_id <> '' AND o.action_type <> '' AND o.amount >= 0 AND o.attempt_count >= 0 AND o.moves >= 1
    AND length(o.payload_hash) = 32 AND (length(o.content_hash) = 32 AND length(o.alike) = 8 AND length(o.chain) = 32) IS NOT FALSE
    AND (o.base_key IS NULL OR (length(o.base_key) = 32 AND o.revision >= 1))
    AND (o.identity IN ('strict', 'workflow')) IS NOT FALSE
    AND (o.approval_state IN ('waiting', 'approved', 'spent', 'denied', 'expired')) IS NOT FALSE
    AND (o.unsettled_since IS NULL OR o.status IN ('executing', 'unknown'))
    AND (o.pruned IS NULL OR o.status IN ('succeeded', 'failed_final'))
    AND CASE o.status
      WHEN 'planned' THEN o.attempt_count = 0
      WHEN 'executing' THEN o.attempt_count > 0 AND o.lease_owner IS NOT NULL AND o.lease_until IS NOT NULL AND o.provider_key IS NOT NULL AND o.first_sent_at IS NOT NULL
      WHEN 'succeeded' THEN o.evidence_json IS NOT NULL OR o.pruned IS NOT NULL
      WHEN 'failed_retryable' THEN o.attempt_count > 0 AND o.last_error_code IS NOT NULL
      WHEN 'failed_final' THEN o.last_error_code IS NOT NULL
      WHEN 'unknown' THEN o.review_opened_at IS NOT NULL OR o.next_check_at IS NOT NULL
      ELSE false END;
END $$;
-- +goose StatementEnd
ALTER TABLE agent_operations ADD CONSTRAINT operation_sound CHECK (operation_is_sound(agent_operations));

CREATE UNIQUE INDEX operation_revisions ON agent_operations (base_key, revision) WHERE base_key IS NOT NULL;
CREATE INDEX operation_workflows ON agent_operations (workflow_id, created_at);
CREATE INDEX operation_alikes ON agent_operations (alike, created_at) WHERE alike IS NOT NULL;
CREATE INDEX operation_checks ON agent_operations (next_check_at) WHERE next_check_at IS NOT NULL;
CREATE INDEX operation_reviews ON agent_operations (review_opened_at) WHERE review_opened_at IS NOT NULL;

-- A row exists as long as its operation is open. So this is also the list that the sweep reads.
CREATE TABLE sealed_payloads (
  operation bigint PRIMARY KEY,
  sealed    bytea  NOT NULL
);

CREATE TABLE history (
  operation   bigint      NOT NULL,
  at          timestamptz NOT NULL,
  token       bigint      NOT NULL,
  seq         integer     NOT NULL,
  attempt     integer     NOT NULL,
  from_status text        COLLATE "C",
  to_status   text        COLLATE "C" NOT NULL,
  reason      text        COLLATE "C",
  evidence    text        COLLATE "C",
  actor       text        COLLATE "C",
  PRIMARY KEY (operation, seq)
);

CREATE VIEW transitions AS
  SELECT o.operation_id, h.seq, h.from_status, h.to_status, h.attempt, h.reason, h.evidence, h.actor, h.at
    FROM history h JOIN agent_operations o ON o.id = h.operation;

-- How much is taken of the limits. A bucket's name says which.
CREATE TABLE limit_usage (
  bucket text   COLLATE "C" PRIMARY KEY,
  used   bigint NOT NULL CHECK (used >= 0)
);

CREATE TABLE ledger_facts (
  name  text  COLLATE "C" PRIMARY KEY,
  value bytea NOT NULL
);

-- +goose StatementBegin
CREATE FUNCTION ledger_refuses() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'onceward: %', TG_ARGV[0] USING ERRCODE = 'OW001';
END $$;
-- +goose StatementEnd

-- Functions name the schema that they were made in, for which "ledger." stands here: they touch this ledger whatever another
-- session's search_path says, and no temporary table can stand in for one of its own. (SET search_path says the same, and takes
-- a fifth of the time of a write.)
-- +goose StatementBegin
DO $do$ BEGIN EXECUTE replace($sql$
CREATE FUNCTION operation_moves() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  replans boolean; -- an operation that was never attempted gets new arguments
  dies    boolean; -- a final operation becomes a tombstone
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF NOT (NEW.moves = 1 AND NEW.unsettled_since IS NULL AND NEW.pruned IS NULL
      AND ((NEW.status = 'planned' AND NEW.attempt_count = 0) OR (NEW.status = 'executing' AND NEW.attempt_count = 1))) THEN
      RAISE EXCEPTION 'onceward: an operation starts planned, or with its first attempt' USING ERRCODE = 'OW001';
    END IF;
    INSERT INTO ledger.history (operation, at, token, seq, attempt, from_status, to_status, reason, evidence, actor)
      VALUES (NEW.id, NEW.updated_at, NEW.token, 1, NEW.attempt_count, NULL, NEW.status, NEW.reason, NEW.evidence_json, NEW.actor);
    RETURN NULL;
  END IF;

  replans := OLD.status = 'failed_final' AND NEW.status = 'planned' AND OLD.attempt_count = 0 AND OLD.pruned IS NULL;
  dies := OLD.pruned IS NULL AND NEW.pruned IS NOT NULL;
  IF NEW.idempotency_key <> OLD.idempotency_key OR NEW.operation_id <> OLD.operation_id OR NEW.base_key IS DISTINCT FROM OLD.base_key
    OR NEW.tenant <> OLD.tenant OR NEW.action_type <> OLD.action_type OR NEW.identity IS DISTINCT FROM OLD.identity
    OR NEW.revision <> OLD.revision OR NEW.created_at <> OLD.created_at THEN
    RAISE EXCEPTION 'onceward: what an operation is never changes' USING ERRCODE = 'OW001';
  END IF;
  IF NOT dies AND (NEW.workflow_id IS DISTINCT FROM OLD.workflow_id OR NEW.step IS DISTINCT FROM OLD.step OR NEW.business_object IS DISTINCT FROM OLD.business_object
    OR NEW.business_operation_id IS DISTINCT FROM OLD.business_operation_id OR NEW.run_id IS DISTINCT FROM OLD.run_id) THEN
    RAISE EXCEPTION 'onceward: what an operation is for never changes' USING ERRCODE = 'OW001';
  END IF;
  IF NOT replans AND (NEW.payload_hash <> OLD.payload_hash
    OR NOT dies AND (NEW.content_hash IS DISTINCT FROM OLD.content_hash OR NEW.alike IS DISTINCT FROM OLD.alike OR NEW.field_hashes IS DISTINCT FROM OLD.field_hashes
      OR NEW.amount <> OLD.amount OR NEW.currency IS DISTINCT FROM OLD.currency)) THEN
    RAISE EXCEPTION 'onceward: the arguments of an operation never change' USING ERRCODE = 'OW001';
  END IF;
  IF NOT dies AND (NEW.provider IS DISTINCT FROM OLD.provider OR NEW.provider_scope IS DISTINCT FROM OLD.provider_scope
      OR NEW.provider_key IS DISTINCT FROM OLD.provider_key OR NEW.key_generation <> OLD.key_generation)
    AND ((NEW.status = 'executing' AND OLD.status <> 'executing' AND NEW.key_generation >= OLD.key_generation)
      OR (NEW.provider_scope IS NULL AND NEW.provider IS NOT DISTINCT FROM OLD.provider AND NEW.provider_key IS NOT DISTINCT FROM OLD.provider_key
        AND NEW.key_generation = OLD.key_generation AND left(NEW.actor, 7) = 'person:')) IS NOT TRUE THEN
    RAISE EXCEPTION 'onceward: only a claim says where an operation goes, and only a person lets it go elsewhere' USING ERRCODE = 'OW001';
  END IF;

  IF NEW.pruned IS DISTINCT FROM OLD.pruned THEN
    IF (OLD.pruned IS NULL AND NEW.pruned = OLD.moves AND NEW.moves = OLD.moves + 1
      AND OLD.status IN ('succeeded', 'failed_final') AND OLD.next_check_at IS NULL AND OLD.review_opened_at IS NULL
      AND NEW.status = OLD.status AND NEW.attempt_count = OLD.attempt_count AND NEW.updated_at = OLD.updated_at
      AND NEW.completed_at IS NOT DISTINCT FROM OLD.completed_at AND NEW.provider IS NOT DISTINCT FROM OLD.provider
      AND NEW.provider_operation_id IS NOT DISTINCT FROM OLD.provider_operation_id
      AND NEW.last_error_code IS NOT DISTINCT FROM OLD.last_error_code AND NEW.unsettled_since IS NULL) IS NOT TRUE THEN
      RAISE EXCEPTION 'onceward: this operation can not be pruned' USING ERRCODE = 'OW001';
    END IF;
    DELETE FROM ledger.history WHERE operation = NEW.id;
    RETURN NULL;
  END IF;

  -- A failure proves only its own attempt: from executing, unsettled_since is cleared by success alone; from unknown, by whatever
  -- settled it, or by a person. It is set only when an attempt becomes unknown.
  IF (NEW.moves = OLD.moves + 1
    AND ((NEW.attempt_count = OLD.attempt_count AND (NEW.status = OLD.status
        OR (OLD.status = 'executing' AND NEW.status IN ('succeeded', 'unknown', 'failed_retryable', 'failed_final'))
        OR (OLD.status IN ('unknown', 'failed_retryable') AND NEW.status IN ('succeeded', 'failed_final'))
        OR (OLD.status = 'planned' AND NEW.status = 'failed_final')
        OR (OLD.status = 'failed_final' AND (NEW.status = 'succeeded' OR (NEW.status = 'planned' AND OLD.attempt_count = 0)))))
      OR (NEW.attempt_count = OLD.attempt_count + 1 AND NEW.status = 'executing' AND OLD.status IN ('planned', 'failed_retryable', 'unknown')))
    AND (NEW.unsettled_since IS NOT DISTINCT FROM OLD.unsettled_since
      OR (NEW.status = 'unknown' AND OLD.unsettled_since IS NULL)
      OR (NEW.unsettled_since IS NULL AND (NEW.status = 'succeeded'
        OR (OLD.status = 'unknown' AND (NEW.status <> 'unknown' OR left(NEW.actor, 7) = 'person:')))))) IS NOT TRUE THEN
    RAISE EXCEPTION 'onceward: illegal move' USING ERRCODE = 'OW001';
  END IF;
  INSERT INTO ledger.history (operation, at, token, seq, attempt, from_status, to_status, reason, evidence, actor)
    VALUES (NEW.id, NEW.updated_at, NEW.token, NEW.moves, NEW.attempt_count, OLD.status, NEW.status, NEW.reason, NEW.evidence_json, NEW.actor);

  IF NEW.status <> OLD.status THEN
    -- What a retry or a person needed goes in the commit that makes the operation final.
    IF NEW.status IN ('succeeded', 'failed_final') AND OLD.status NOT IN ('succeeded', 'failed_final') THEN
      DELETE FROM ledger.sealed_payloads WHERE operation = NEW.id;
    END IF;
    -- Whoever waits for an operation holds a lock that says so, shared. A notification is sent only then: commits that notify
    -- wait for each other.
    IF OLD.status = 'executing' AND NOT pg_try_advisory_xact_lock(1332634469, hashtext(NEW.operation_id)) THEN
      PERFORM pg_notify('onceward_' || TG_RELID, NEW.operation_id);
    END IF;
  END IF;
  RETURN NULL;
END $$
$sql$, 'ledger.', quote_ident(current_schema()) || '.'); END $do$;
-- +goose StatementEnd
CREATE TRIGGER operation_moves AFTER INSERT OR UPDATE ON agent_operations FOR EACH ROW EXECUTE FUNCTION operation_moves();

-- +goose StatementBegin
DO $do$ BEGIN EXECUTE replace($sql$
CREATE FUNCTION payload_needed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM ledger.agent_operations WHERE id = NEW.operation AND status NOT IN ('succeeded', 'failed_final')) THEN
    RAISE EXCEPTION 'onceward: only an open operation keeps a payload' USING ERRCODE = 'OW001';
  END IF;
  RETURN NEW;
END $$
$sql$, 'ledger.', quote_ident(current_schema()) || '.'); END $do$;
-- +goose StatementEnd
CREATE TRIGGER payload_needed BEFORE INSERT ON sealed_payloads FOR EACH ROW EXECUTE FUNCTION payload_needed();

-- A history is written, and goes with its tombstone, by the triggers above alone; so does a payload go.
CREATE TRIGGER operation_kept BEFORE DELETE ON agent_operations EXECUTE FUNCTION ledger_refuses('operations are never forgotten');
CREATE TRIGGER payload_fixed BEFORE UPDATE ON sealed_payloads EXECUTE FUNCTION ledger_refuses('every attempt sends the same payload');
CREATE TRIGGER payload_kept BEFORE DELETE ON sealed_payloads WHEN (pg_trigger_depth() < 1) EXECUTE FUNCTION ledger_refuses('an open operation keeps its payload');
CREATE TRIGGER history_appended BEFORE INSERT ON history WHEN (pg_trigger_depth() < 1) EXECUTE FUNCTION ledger_refuses('the history is append-only');
CREATE TRIGGER history_fixed BEFORE UPDATE ON history EXECUTE FUNCTION ledger_refuses('the history is append-only');
CREATE TRIGGER history_kept BEFORE DELETE ON history WHEN (pg_trigger_depth() < 1) EXECUTE FUNCTION ledger_refuses('the history is append-only');
CREATE TRIGGER fact_fixed BEFORE UPDATE ON ledger_facts EXECUTE FUNCTION ledger_refuses('a fact never changes');
CREATE TRIGGER fact_kept BEFORE DELETE ON ledger_facts EXECUTE FUNCTION ledger_refuses('a fact never changes');
CREATE TRIGGER operation_emptied BEFORE TRUNCATE ON agent_operations EXECUTE FUNCTION ledger_refuses('operations are never forgotten');
CREATE TRIGGER payload_emptied BEFORE TRUNCATE ON sealed_payloads EXECUTE FUNCTION ledger_refuses('an open operation keeps its payload');
CREATE TRIGGER history_emptied BEFORE TRUNCATE ON history EXECUTE FUNCTION ledger_refuses('the history is append-only');
CREATE TRIGGER fact_emptied BEFORE TRUNCATE ON ledger_facts EXECUTE FUNCTION ledger_refuses('a fact never changes');
CREATE TRIGGER usage_emptied BEFORE TRUNCATE ON limit_usage EXECUTE FUNCTION ledger_refuses('what is taken of limits is never forgotten');

-- Takes of a limit for the move that a write has just made; nothing, if it made none. Passing the bound undoes the transaction.
-- +goose StatementBegin
DO $do$ BEGIN EXECUTE replace($sql$
CREATE FUNCTION ledger_take(mover text, write_token bigint, limited text, n bigint, bound bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  total bigint;
BEGIN
  IF EXISTS (SELECT FROM ledger.agent_operations WHERE operation_id = mover AND token = write_token) THEN
    INSERT INTO ledger.limit_usage AS u (bucket, used) VALUES (limited, n)
      ON CONFLICT (bucket) DO UPDATE SET used = u.used + n RETURNING used INTO total;
    IF bound > 0 AND total > bound THEN
      RAISE EXCEPTION 'onceward: the limit is used up' USING ERRCODE = 'OW002';
    END IF;
  END IF;
END $$
$sql$, 'ledger.', quote_ident(current_schema()) || '.'); END $do$;
-- +goose StatementEnd

-- Undoes the transaction if what a decision rests on has changed since.
-- +goose StatementBegin
CREATE FUNCTION ledger_unchanged(seen text, present text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF seen IS DISTINCT FROM present THEN
    RAISE EXCEPTION 'onceward: the decision is stale' USING ERRCODE = 'OW002';
  END IF;
END $$;
-- +goose StatementEnd

-- +goose Down
DO $$ BEGIN RAISE EXCEPTION 'onceward: a ledger is never taken down'; END $$;
