package sandbox

import _ "embed"

var (
	//go:embed sql/schema.sql
	sqlSchema string
	//go:embed sql/find_record.sql
	sqlFindRecord string
	//go:embed sql/put_record.sql
	sqlPutRecord string
	//go:embed sql/add_effect.sql
	sqlAddEffect string
	//go:embed sql/reject_effect.sql
	sqlRejectEffect string
	//go:embed sql/find_effects.sql
	sqlFindEffects string
	//go:embed sql/list_effects.sql
	sqlListEffects string
	//go:embed sql/used_fault.sql
	sqlUsedFault string
	//go:embed sql/spend_fault.sql
	sqlSpendFault string
)
