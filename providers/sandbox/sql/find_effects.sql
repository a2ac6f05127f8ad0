SELECT provider_operation_id, rejected, arguments
FROM effects WHERE provider_key = ? AND action_type = ? AND at <= ?
ORDER BY at, id LIMIT 2;
