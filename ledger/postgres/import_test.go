package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/postgres"
	"github.com/onceward/onceward/ledger/sqlite"
)

// filled is the path of a ledger with n more operations than fill makes.
func filled(t *testing.T, more int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.db")
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	f := &filler{T: t, store: s}
	f.fill()
	for range more {
		f.add(func(op ledger.Operation) (ledger.Move, error) {
			return op.Insert(f.claim(op), []byte("sealed"), lineOf("claimed", "worker:a"))
		}, func(op ledger.Operation) (ledger.Move, error) {
			return op.Fail(op.UpdatedAt.Add(time.Second), "declined", lineOf("provider_answered", "worker:a"))
		})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// copyTo copies the ledger at path, through what wrap makes of the target.
func copyTo(t *testing.T, path, place string, batch int, wrap func(ledger.CopyTarget) ledger.CopyTarget) (ledger.CopyReport, error) {
	t.Helper()
	source, err := sqlite.OpenExport(t.Context(), path, copiedAt.Add(99*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	store := openStore(t, place)
	target, err := store.Import(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close(background)
	c := ledger.Copy{From: source, To: target, Batch: batch}
	if wrap != nil {
		c.To = wrap(target)
	}
	return c.Run(t.Context())
}

// everything is what a Store says of all it has.
type everything struct {
	Operations []ledger.Operation
	History    map[string][]ledger.Transition
	Sealed     map[string]string
	Facts      map[string]string
	Usage      map[string]int64
}

func allOf(t *testing.T, s ledger.Store) (e everything) {
	t.Helper()
	e.History, e.Sealed, e.Facts = map[string][]ledger.Transition{}, map[string]string{}, map[string]string{}
	var err error
	if e.Operations, err = s.Find(t.Context(), ledger.Filter{Limit: 1e6}); err != nil {
		t.Fatal(err)
	}
	for _, op := range e.Operations {
		history, err := s.History(t.Context(), op.ID)
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := s.Sealed(t.Context(), op.ID)
		if err != nil {
			t.Fatal(err)
		}
		e.History[op.ID], e.Sealed[op.ID] = history, string(sealed)
	}
	for _, name := range []string{"secret_check", "checkpoint:1", "empty", "other"} {
		fact, err := s.Recall(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		e.Facts[name] = fmt.Sprint(fact != nil, string(fact))
	}
	if e.Usage, err = s.Usage(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return e
}

func wantCopied(t *testing.T, path, place string) {
	t.Helper()
	source, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	want := allOf(t, source)
	if diff := cmp.Diff(want, allOf(t, openStore(t, place))); diff != "" {
		t.Errorf("the copy (-source +copy):\n%s", diff)
	}
	wantPruned(t, path, place)
	seen := map[ledger.Status]bool{}
	for _, op := range want.Operations {
		seen[op.Status] = true
	}
	if len(seen) != len(ledger.Statuses()) || len(want.Usage) != 3 {
		t.Errorf("the source has the statuses %v and %d limits; the test has lost what it tests", seen, len(want.Usage))
	}
}

// wantPruned compares how many lines went with each tombstone, which no Store tells.
func wantPruned(t *testing.T, path, place string) {
	t.Helper()
	const query = `SELECT operation_id, pruned FROM agent_operations WHERE pruned IS NOT NULL`
	source, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	rows, err := source.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	want, got := map[string]int{}, map[string]int{}
	var id string
	var pruned int
	for rows.Next() {
		if err := rows.Scan(&id, &pruned); err != nil {
			t.Fatal(err)
		}
		want[id] = pruned
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	copied, err := connect(t, place).Query(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pgx.ForEachRow(copied, []any{&id, &pruned}, func() error { got[id] = pruned; return nil }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) != 3 {
		t.Errorf("lines that went with the tombstones (-source +copy):\n%s", diff)
	}
}

func TestACopyIsEqualThroughBothStores(t *testing.T) {
	t.Parallel()
	place, path := newSchema(t), filled(t, 0)
	report, err := copyTo(t, path, place, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	if report.Copied != 16 || report.Source != report.Target || report.Target.Tombstones != 3 || report.Target.Facts != 3 {
		t.Errorf("report: %+v; want 16 operations, 3 tombstones, 3 facts", report)
	}
	wantCopied(t, path, place)
	if report, err := copyTo(t, path, place, 0, nil); err != nil || report.Copied != 0 {
		t.Errorf("once more: %d copied, %v; want none", report.Copied, err)
	}
}

// The copy is guarded like any ledger: nothing is left switched off, and it moves on.
func TestACopyIsGuarded(t *testing.T) {
	t.Parallel()
	place, path := newSchema(t), filled(t, 0)
	if _, err := copyTo(t, path, place, 0, nil); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, place)
	for _, query := range []string{
		`INSERT INTO history (operation, at, token, seq, attempt, to_status) VALUES (2, now(), 1, 99, 1, 'succeeded')`,
		`UPDATE agent_operations SET result_json = '{}' WHERE status = 'succeeded'`,
		`DELETE FROM sealed_payloads`, `DELETE FROM agent_operations`, `UPDATE ledger_facts SET value = '\x00'`,
	} {
		if _, err := conn.Exec(t.Context(), query); err == nil || !strings.Contains(err.Error(), "OW001") {
			t.Errorf("%s: %v, want a refusal", query, err)
		}
	}
	var off int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_trigger WHERE tgrelid IN ('agent_operations'::regclass, 'history'::regclass, 'sealed_payloads'::regclass)
		AND (tgenabled <> 'O' OR tgname = 'import_under_way')`).Scan(&off); err != nil || off != 0 {
		t.Errorf("%d triggers are off or left, %v; want none", off, err)
	}
	f := &filler{T: t, store: openStore(t, place), made: 1000}
	f.add(func(op ledger.Operation) (ledger.Move, error) {
		return op.Insert(f.claim(op), nil, lineOf("claimed", "worker:a"))
	}, func(op ledger.Operation) (ledger.Move, error) {
		return op.Fail(op.UpdatedAt.Add(time.Second), "declined", lineOf("provider_answered", "worker:a"))
	})
	all := allOf(t, f.store).Operations
	if last := all[len(all)-1].ID; last != "op_001001" {
		t.Errorf("the newest operation is %s, want the one that came after the copy", last)
	}
}

// tearing is a target that fails after some batches, with its transaction's answer lost or not written.
type tearing struct {
	ledger.CopyTarget
	left int
}

var errTorn = errors.New("torn off")

func (t *tearing) Append(ctx context.Context, records []ledger.Record) error {
	if t.left--; t.left < 0 {
		return errTorn
	}
	return t.CopyTarget.Append(ctx, records)
}

// Until the copy is whole nobody can work with it: a repeat of what isn't there yet would look new.
func TestATornCopyIsNotServedAndGoesOn(t *testing.T) {
	t.Parallel()
	place, path := newSchema(t), filled(t, 0)
	_, err := copyTo(t, path, place, 3, func(to ledger.CopyTarget) ledger.CopyTarget { return &tearing{to, 2} })
	if !errors.Is(err, errTorn) {
		t.Fatal(err)
	}
	served := openStore(t, place)
	if found := allOf(t, served); len(found.Operations) != 6 || found.Usage == nil || len(found.Usage) != 0 {
		t.Errorf("after two batches there are %d operations, usage %v; want 6, none", len(found.Operations), found.Usage)
	}
	f := &filler{T: t, store: served, made: 1000}
	op := f.fresh()
	m, err := op.Insert(f.claim(op), nil, lineOf("claimed", "worker:a"))
	if err != nil {
		t.Fatal(err)
	}
	err = served.Begin(t.Context(), ledger.Sought{Key: op.Key}, func(ledger.Found) (ledger.Move, error) { return m, nil })
	if err == nil || !strings.Contains(err.Error(), "another ledger is being copied into this one") {
		t.Errorf("a claim in a torn copy: %v, want a refusal that says why", err)
	}
	report, err := copyTo(t, path, place, 4, nil)
	if err != nil || report.Copied != 10 {
		t.Errorf("going on: %d copied, %v; want the other 10", report.Copied, err)
	}
	wantCopied(t, path, place)
}

func TestAChangedRowIsNamed(t *testing.T) {
	t.Parallel()
	place, path := newSchema(t), filled(t, 2)
	if _, err := copyTo(t, path, place, 0, func(to ledger.CopyTarget) ledger.CopyTarget { return &tearing{to, 1} }); err != nil {
		t.Fatal(err)
	}
	execute(t, place, `ALTER TABLE history DISABLE TRIGGER USER; UPDATE history SET reason = 'x' WHERE operation = 5 AND seq = 1; ALTER TABLE history ENABLE TRIGGER USER`)
	_, err := copyTo(t, path, place, 0, nil)
	if _, ok := errors.AsType[*ledger.CopyError](err); !ok || !strings.Contains(err.Error(), "op_000005: the target has this operation with another history") {
		t.Errorf("%v, want op_000005's history named", err)
	}
}

// What PostgreSQL can't keep, and what its rules refuse, is named; and nothing of the batch is written.
func TestAppendWritesAllOrNothing(t *testing.T) {
	t.Parallel()
	store := openStore(t, newSchema(t))
	target, err := store.Import(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close(background)
	good := func(i int) ledger.Record {
		op := (&filler{made: i}).fresh()
		op.Status, op.ErrorCode, op.Moves, op.CreatedAt, op.UpdatedAt = ledger.FailedFinal, "x", 1, copiedAt, copiedAt
		return ledger.Record{Operation: op, History: []ledger.Transition{{Seq: 1, To: ledger.FailedFinal, At: copiedAt}}}
	}
	for name, spoil := range map[string]func(*ledger.Record){
		"a zero byte":     func(r *ledger.Record) { r.Operation.ProviderStatus = "a\x00b" },
		"not UTF-8":       func(r *ledger.Record) { r.History[0].Reason = "\xff" },
		"the same key":    func(r *ledger.Record) { r.Operation.Key = good(1).Operation.Key },
		"no such status":  func(r *ledger.Record) { r.Operation.Status = "done" },
		"a line twice":    func(r *ledger.Record) { r.History = append(r.History, r.History[0]) },
		"without success": func(r *ledger.Record) { r.Operation.Status = ledger.Succeeded },
	} {
		bad := good(2)
		spoil(&bad)
		err := target.Append(t.Context(), []ledger.Record{good(1), bad})
		if _, ok := errors.AsType[*ledger.CopyError](err); !ok {
			t.Errorf("%s: %v, want a CopyError", name, err)
		}
		if found := allOf(t, store).Operations; len(found) != 0 {
			t.Fatalf("%s: %d operations were written", name, len(found))
		}
	}
	if err := target.Append(t.Context(), []ledger.Record{good(1), good(2)}); err != nil {
		t.Error(err)
	}
}

func TestImportsThatCanNotBe(t *testing.T) {
	t.Parallel()
	place := newSchema(t)
	store := openStore(t, place)
	first, err := store.Import(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openStore(t, place).Import(t.Context()); err == nil || !strings.Contains(err.Error(), "another copy into this ledger is under way") {
		t.Errorf("a second import: %v", err)
	}
	f := &filler{T: t, store: store}
	f.add(func(op ledger.Operation) (ledger.Move, error) {
		return op.Insert(f.claim(op), nil, lineOf("claimed", "worker:a"))
	})
	err = first.Hold(t.Context(), 0, 0, nil)
	if _, ok := errors.AsType[*ledger.CopyError](err); !ok || !strings.Contains(err.Error(), "somebody writes to the target") {
		t.Errorf("Hold of a ledger that is served: %v", err)
	}
	f.add(func(op ledger.Operation) (ledger.Move, error) {
		return op.Insert(f.claim(op), nil, lineOf("claimed", "worker:a"))
	})
	first.Close(background)

	role := "copier_" + fmt.Sprintf("%x", hashOf(place, 0))[:12]
	schema := strings.Trim(parameter(t, place, "search_path"), `"`)
	execute(t, place, `CREATE ROLE `+role+` LOGIN; GRANT USAGE ON SCHEMA "`+schema+`" TO `+role+`;
		GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "`+schema+`" TO `+role)
	t.Cleanup(func() { execute(t, place, `DROP OWNED BY `+role+`; DROP ROLE `+role) })
	_, err = openStore(t, asUser(t, place, role)).Import(t.Context())
	if _, ok := errors.AsType[*postgres.OpenError](err); !ok || !strings.Contains(err.Error(), "only the tables' owner may do so; name that user in the URL: onceward") {
		t.Errorf("an import by somebody else than the owner: %v", err)
	}
}

// parameter is one of a URL's.
func parameter(t *testing.T, raw, name string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get(name)
}

// asUser is the URL with another user.
func asUser(t *testing.T, raw, user string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(user)
	return u.String()
}
