INSERT OR REPLACE INTO records
  (provider_key, action_type, digest, failed, provider_operation_id, state, at, done_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);
