// Package sqlite keeps the ledger in one SQLite file: the default, for one machine.
// Several processes may have the same file open.
//
// Writing is group commit. Callers that want to write at the same time share one
// transaction, and one flush to the disk; see queue. Between processes, a lock
// beside the database gives everybody a turn; see writer. Reading never waits for
// a writer: the file is in WAL mode.
//
// The SQL is in plain sight: the schema with all that it refuses is in migrations,
// the queries stand beside the code that runs them.
package sqlite
