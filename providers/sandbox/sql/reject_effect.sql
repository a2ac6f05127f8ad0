UPDATE effects SET rejected = 1 WHERE provider_operation_id = ?;
