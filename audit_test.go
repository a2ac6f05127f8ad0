package main

import (
	"database/sql"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestAuditCommands: what is whole says so, what was edited ends with 1, and an export begins where it is told to.
func TestAuditCommands(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	server := startLocal(t, "stdio", dir)
	c := &client{wire: server.dial(t, nil), era: statelessEra}
	for _, id := range []string{"r-1", "r-2"} {
		if _, err := c.call(t.Context(), "refund", with(`{"business_operation_id":"`+id+`"}`, refundArgs)); err != nil {
			t.Fatal(err)
		}
	}
	server.stop()
	audit := func(args ...string) (int, string) {
		code, out, _ := command(t.Context(), append(append([]string{"audit"}, args...), "--data-dir", dir)...)
		return code, out
	}
	if code, out := audit("verify"); code != exitDone || !strings.Contains(out, "Nothing was changed") {
		t.Errorf("%d: %s", code, out)
	}
	if code, out := audit("verify", "--expect", "0123"); code != exitRefused || !strings.Contains(out, "kept elsewhere") {
		t.Errorf("a proof that the trail doesn't contain: %d: %s", code, out)
	}
	_, all := audit("export")
	_, none := audit("export", "--since", time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	if lines := strings.Count(all, "\n"); lines != 4 || none != "" {
		t.Errorf("%d lines of export, and %q from the future; want 4 and nothing", lines, none)
	}
	var line struct {
		OperationID string `json:"operation_id"`
		At          time.Time
	}
	if err := json.Unmarshal([]byte(strings.Split(all, "\n")[1]), &line); err != nil {
		t.Fatal(err)
	}
	_, later := audit("export", "--since", line.At.Format(time.RFC3339Nano))
	if lines := strings.Count(later, "\n"); lines != 3 {
		t.Errorf("%d lines since the second one, want 3:\n%s", lines, later)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`DROP TRIGGER history_fixed; UPDATE history SET actor = 'person:eve' WHERE operation = 1 AND seq = 2`); err != nil {
		t.Fatal(err)
	}
	if code, out := audit("verify", "--json"); code != exitRefused || !strings.Contains(out, line.OperationID) || !strings.Contains(out, "its history was changed") {
		t.Errorf("after an edit: %d: %s", code, out)
	}
}
