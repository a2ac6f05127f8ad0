package sqlite

import (
	"errors"
	"testing"
	"time"

	"github.com/onceward/onceward/ledger"
)

// A doing is work as a function.
type doing func(w *writer) error

func (d doing) do(w *writer) error { return d(w) }

// What one task meets, such as a full disk, ends the transaction for all: those whose
// work was done already, and those whose answer rests on it.
func TestABrokenTransactionFailsAllOfIt(t *testing.T) {
	t.Parallel()
	full := errors.New("the disk is full")
	for name, breaks := range map[string]doing{
		"an error": func(w *writer) error { return w.judge(full) },
		"a panic":  func(*writer) error { panic(full) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openInside(t)
			batch := []*task{{work: inserting(t, 1)}, {work: breaks}, {work: inserting(t, 2)}}
			panicked := recovered(func() { s.writer.commit(func() []*task { return batch }) })
			if panicked == nil {
				for i, task := range batch {
					if !errors.Is(task.err, full) {
						t.Errorf("task %d got %v, want the error that broke the transaction", i, task.err)
					}
				}
			}
			if n := count(t, s); n != 0 {
				t.Errorf("%d operations were written, want none", n)
			}
			after := []*task{{work: inserting(t, 3)}}
			s.writer.commit(func() []*task { return after })
			if n := count(t, s); after[0].err != nil || n != 1 {
				t.Errorf("the next transaction = %v with %d operations, want nil and 1", after[0].err, n)
			}
		})
	}
}

func inserting(t *testing.T, i byte) work {
	op := ledger.Operation{ID: "op_" + string('0'+i), Key: ledger.Key{i}, Action: "refund", Fingerprint: ledger.Hash{i}}
	m, err := op.Insert(ledger.Claim{Owner: "host", At: time.Unix(1, 0), Lease: time.Minute}, nil, ledger.Note{Actor: "test", Reason: "claimed"})
	if err != nil {
		t.Fatal(err)
	}
	return doing(func(w *writer) error { return w.carry(m, false) })
}

func count(t *testing.T, s *Store) int {
	t.Helper()
	found, err := s.Find(t.Context(), ledger.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

func recovered(do func()) (p any) {
	defer func() { p = recover() }()
	do()
	return nil
}
