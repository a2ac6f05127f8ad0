INSERT INTO effects (action_type, provider_key, provider_operation_id, at, arguments)
VALUES (?, ?, ?, ?, ?);
