package ledger_test

import (
	"testing"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/ledgertest"
)

// A call that is under way when the server begins to end may be answered, but claims nothing
// any more: not a new operation, and not the next attempt of an old one.
func TestAServerThatEndsClaimsNothing(t *testing.T) {
	for name, reach := range map[string]func(t *world, s *server){
		"a new operation": func(*world, *server) {},
		"the next attempt of one that wasn't sent": func(t *world, s *server) {
			t.provider.will(isUnreachable)
			s.call(strictly("a", theArgs))
			pass(time.Minute)
		},
		"what a person has let go": func(t *world, s *server) {
			t.inReview(s, losesRequest)
			pass(time.Minute)
			if _, err := s.Resolve(t.Context(), t.only().ID, ledger.Retry, "", 1, anna); err != nil {
				t.Fatal(err)
			}
		},
	} {
		inWorldNamed(t, name, func(t *world) {
			reach(t, t.start())
			before, effects := 0, t.provider.count()
			if found, err := t.store.Find(t.Context(), ledger.Filter{}); err != nil {
				t.Fatal(err)
			} else if len(found) == 1 {
				before = found[0].Attempts
			}
			s := t.start()
			s.failing.Before = func(c ledgertest.Call) error {
				if c.Method == "Begin" {
					s.Close() // now, while the call is on its way
				}
				return nil
			}
			a, err := s.Execute(t.Context(), strictly("a", theArgs))
			found, findErr := t.store.Find(t.Context(), ledger.Filter{})
			if findErr != nil {
				t.Fatal(findErr)
			}
			for _, op := range found {
				if op.Attempts != before {
					t.Errorf("attempt %d was claimed; the call got %q, %v", op.Attempts, a.Status, err)
				}
			}
			if got := t.provider.count(); got != effects || before == 0 && len(found) > 0 {
				t.Errorf("%d effects and %d operations, want %d and none new", got, len(found), effects)
			}
			t.want(t.start().call(strictly("a", theArgs)), ledger.AnswerSucceeded, effects+1)
		})
	}
}
