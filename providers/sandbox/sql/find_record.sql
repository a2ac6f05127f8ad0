SELECT digest, failed, provider_operation_id, state, at, done_at
FROM records WHERE provider_key = ? AND action_type = ?;
