SELECT action_type, provider_key, provider_operation_id, at, arguments
FROM effects WHERE at <= ?
ORDER BY at, id;
