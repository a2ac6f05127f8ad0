package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/postgres"
)

// In lostTests a connection breaks while a move is being written: what the caller is told must be what
// the ledger holds, and the move must be there once.
var lostTests = map[string]struct {
	fault     fault
	meanwhile func(*testing.T, *postgres.Store, ledger.Operation) // another server, before ours finds out
	want      error
}{
	"the request is lost":                           {fault: loseRequest},
	"the reply is lost":                             {fault: loseReply},
	"the request comes late":                        {fault: lateRequest},
	"the reply is lost, and another server goes on": {fault: loseReply, meanwhile: goesOn},
	"the request is lost, and another server moves": {fault: loseRequest, meanwhile: moves, want: ledger.ErrStale},
	"the request comes late, another server moves":  {fault: lateRequest, meanwhile: moves, want: ledger.ErrStale},
}

// moves makes, with the same words and at the same time, the move that ours was to make.
func moves(t *testing.T, other *postgres.Store, op ledger.Operation) {
	if err := other.Record(t.Context(), outcome(t, op)); err != nil {
		t.Errorf("the other server: %v", err)
	}
}

// goesOn makes a further move.
func goesOn(t *testing.T, other *postgres.Store, op ledger.Operation) {
	found, err := other.Find(t.Context(), ledger.Filter{ID: op.ID})
	if err != nil || len(found) != 1 {
		t.Errorf("the other server finds %d operations, %v", len(found), err)
		return
	}
	m, err := found[0].Observe(benchTime.Add(time.Hour), benchOutcome, func(o *ledger.Operation) { o.Conflicts++ })
	if err == nil {
		err = other.Record(t.Context(), m)
	}
	if err != nil {
		t.Errorf("the other server: %v", err)
	}
}

func TestALostAnswerIsFoundOutAbout(t *testing.T) {
	t.Parallel()
	for name, test := range lostTests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := newSchema(t)
			p, through := newProxy(t, place)
			s, other := openStore(t, through), openStore(t, place)
			record(t, s, outcome(t, claim(t, s, 1, "run"))) // the connection knows the statements then
			op := claim(t, s, 2, "run")

			var before func()
			if test.meanwhile != nil {
				before = func() { test.meanwhile(t, other, op) }
			}
			p.strike(test.fault, before)
			if err := s.Record(t.Context(), outcome(t, op)); !errors.Is(err, test.want) {
				t.Errorf("Record = %v, want %v", err, test.want)
			}
			close(p.release)
			p.late.Wait()
			lines := 2
			if test.fault == loseReply && test.meanwhile != nil {
				lines = 3
			}
			wantHistory(t, other, op.ID, lines)
		})
	}
}

func TestALostAnswerToAClaimIsFoundOutAbout(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fault{"request": loseRequest, "reply": loseReply, "late request": lateRequest} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := newSchema(t)
			p, through := newProxy(t, place)
			s, other := openStore(t, through), openStore(t, place)
			claim(t, s, 1, "run")
			decided := 0
			op := benchOperation(2)
			op.Alike = ledger.FieldHash{1}
			err := s.Begin(t.Context(), ledger.Sought{Key: op.Key}, func(f2 ledger.Found) (ledger.Move, error) {
				decided++
				p.strike(f, nil)
				return op.Insert(limitedClaim("run"), benchSeal, benchClaim)
			})
			if err != nil || decided != 1 {
				t.Errorf("Begin = %v after %d decisions, want success after 1: the claim is ours", err, decided)
			}
			close(p.release)
			p.late.Wait()
			wantHistory(t, other, op.ID, 1)
			used, err := other.Usage(t.Context(), nil)
			if err != nil || len(used) != 1 {
				t.Fatalf("Usage = %v, %v; want one bucket", used, err)
			}
			for bucket, n := range used {
				if n != 2 {
					t.Errorf("%s has %d, want 2: one of each claim", bucket, n)
				}
			}
			if sealed, err := other.Sealed(t.Context(), op.ID); string(sealed) != string(benchSeal) {
				t.Errorf("Sealed = %q, %v", sealed, err)
			}
		})
	}
}

// What a decision rested on has changed only by its own lost write: that must not look stale.
func TestALostWorkflowClaimIsNotItsOwnPredecessor(t *testing.T) {
	t.Parallel()
	place := newSchema(t)
	p, through := newProxy(t, place)
	s, other := openStore(t, through), openStore(t, place)
	insert := func(i int, f fault) int {
		op := benchOperation(i)
		op.BaseKey, op.Alike, op.Intent.Identity = ledger.Key{byte(i), 1}, ledger.FieldHash{byte(i)}, ledger.Workflow
		decided := 0
		err := s.Begin(t.Context(), ledger.Sought{BaseKey: op.BaseKey, Alike: op.Alike}, func(found ledger.Found) (ledger.Move, error) {
			decided++
			if found.Operation != nil {
				return ledger.Move{}, nil
			}
			p.strike(f, nil)
			return op.Insert(limitedClaim(""), nil, benchClaim)
		})
		if err != nil {
			t.Errorf("Begin: %v", err)
		}
		return decided
	}
	insert(1, none)
	if n := insert(2, loseReply); n != 1 {
		t.Errorf("it was decided %d times, want once: the claim is its own", n)
	}
	wantHistory(t, other, benchOperation(2).ID, 1)
}

func TestACommitThatCanNotBeFoundOutAbout(t *testing.T) {
	t.Parallel()
	place := newSchema(t)
	p, through := newProxy(t, place)
	s := openStore(t, through)
	postgres.SetSettleWithin(s, 100*time.Millisecond)
	record(t, s, outcome(t, claim(t, s, 1, "")))
	op := claim(t, s, 2, "")
	p.strike(loseReply, p.down)
	if err := s.Record(t.Context(), outcome(t, op)); !errors.Is(err, ledger.ErrCommitLost) {
		t.Errorf("Record = %v, want ErrCommitLost", err)
	}
}

func limitedClaim(reserved string) ledger.Claim {
	return ledger.Claim{Owner: "host", At: benchTime, Lease: time.Minute, Provider: "sandbox", Scope: "scope", Takes: ledger.Allowance{Reserved: reserved}}
}

// claim inserts the i-th operation.
func claim(t testing.TB, s *postgres.Store, i int, reserved string) ledger.Operation {
	t.Helper()
	m, err := benchOperation(i).Insert(limitedClaim(reserved), benchSeal, benchClaim)
	if err != nil {
		t.Fatal(err)
	}
	return record(t, s, m)
}

// outcome is the move that makes op succeed.
func outcome(t testing.TB, op ledger.Operation) ledger.Move {
	t.Helper()
	m, err := op.Succeed(benchTime.Add(time.Second), ledger.Receipt{ProviderOperationID: "re_1"}, time.Time{}, benchOutcome)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func record(t testing.TB, s *postgres.Store, m ledger.Move) ledger.Operation {
	t.Helper()
	if err := s.Record(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	return m.To()
}

func wantHistory(t *testing.T, s *postgres.Store, id string, lines int) {
	t.Helper()
	h, err := s.History(t.Context(), id)
	if err != nil || len(h) != lines {
		t.Errorf("the history has %d lines (%v), want %d", len(h), err, lines)
	}
}
