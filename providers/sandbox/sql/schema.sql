-- The journal of a provider that exists only to be practised on.
-- Times are nanoseconds since 1970, by the provider's clock.

CREATE TABLE sandbox (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  id   TEXT NOT NULL
) STRICT;

-- What happened. An effect whose time is still to come belongs to a request that
-- is still running.
CREATE TABLE effects (
  id                    INTEGER PRIMARY KEY,
  action_type           TEXT NOT NULL,
  provider_key          TEXT NOT NULL,
  provider_operation_id TEXT NOT NULL UNIQUE,
  at                    INTEGER NOT NULL,
  rejected              INTEGER NOT NULL DEFAULT 0 CHECK (rejected = 0 OR rejected = 1),
  arguments             TEXT NOT NULL CHECK (json_valid(arguments))
) STRICT;

CREATE INDEX effects_by_key ON effects (provider_key, action_type);

-- What the provider remembers of a key: who answered what. A failed one is never
-- forgotten.
CREATE TABLE records (
  provider_key          TEXT NOT NULL,
  action_type           TEXT NOT NULL,
  digest                BLOB NOT NULL,
  failed                INTEGER NOT NULL CHECK (failed = 0 OR failed = 1),
  provider_operation_id TEXT NOT NULL,
  state                 TEXT NOT NULL,
  at                    INTEGER NOT NULL,
  done_at               INTEGER NOT NULL,
  PRIMARY KEY (provider_key, action_type)
) STRICT;

-- How often each fault was used, by its place in the list and its text.
CREATE TABLE faults (
  place INTEGER NOT NULL,
  fault TEXT NOT NULL,
  used  INTEGER NOT NULL,
  PRIMARY KEY (place, fault)
) STRICT;
