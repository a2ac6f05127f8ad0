package ledger_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
)

func limits(all ...ledger.Limit) ledger.Rules { return ledger.Rules{Limits: all} }

// in is a call in a workflow and a run, worth an amount.
func in(workflow, run, name string, minor int64) ledger.Request {
	r := strictly(name, theArgs)
	r.Intent.WorkflowID, r.Intent.RunID = workflow, run
	r.Amount = ledger.Amount{Minor: minor, Currency: "USD"}
	return r
}

func (w *world) wantExceeded(s *server, r ledger.Request, field string) *ledger.Refusal {
	w.Helper()
	before := w.provider.count()
	refusal := s.refused(r)
	if found, err := w.store.Find(w.Context(), ledger.Filter{ID: refusal.OperationID}); err != nil || refusal.OperationID != "" && len(found) != 1 {
		w.Errorf("the refusal names an operation that isn't there: %s, %v", refusal.OperationID, err)
	}
	if refusal.Code != ledger.LimitExceeded || len(refusal.Fields) != 1 || refusal.Fields[0] != field || w.provider.count() != before {
		w.Errorf("refused with %q %v, want limit_exceeded of %s and no effect", refusal.Code, refusal.Fields, field)
	}
	return refusal
}

func TestLimits(t *testing.T) {
	inWorldNamed(t, "a hundred calls at once against ten", func(t *world) {
		t.rules = limits(ledger.Limit{Scope: ledger.PerWorkflow, Max: 10})
		servers := []*server{t.start(), t.start()}
		var all sync.WaitGroup
		var let, refused atomic.Int32
		for i := range 100 {
			all.Go(func() {
				_, err := servers[i%2].Execute(t.Context(), strictly(fmt.Sprint(i), theArgs))
				if refusal, ok := errors.AsType[*ledger.Refusal](err); ok && refusal.Code == ledger.LimitExceeded {
					refused.Add(1)
				} else if err == nil {
					let.Add(1)
				}
			})
		}
		all.Wait()
		if let.Load() != 10 || refused.Load() != 90 || t.provider.count() != 10 {
			t.Errorf("%d let, %d refused, %d effects; want 10, 90 and 10", let.Load(), refused.Load(), t.provider.count())
		}
	})
	inWorldNamed(t, "a replay is free, and a refused call leaves nothing", func(t *world) {
		t.rules = limits(ledger.Limit{Scope: ledger.PerWorkflow, Max: 1})
		s := t.start()
		for range 5 {
			t.want(s.call(strictly("a", theArgs)), ledger.AnswerSucceeded, 1)
		}
		t.wantExceeded(s, strictly("b", theArgs), "limits.per_workflow.count")
		t.only()
		s.Rules["refund"] = limits(ledger.Limit{Scope: ledger.PerWorkflow, Max: 2})
		t.want(s.call(strictly("b", theArgs)), ledger.AnswerSucceeded, 2)
	})
	inWorldNamed(t, "a failure that is proven gives back", func(t *world) {
		t.rules = limits(ledger.Limit{Scope: ledger.PerWorkflow, Max: 1})
		t.provider.will(refuses, isUnreachable)
		s := t.start()
		t.want(s.call(strictly("a", theArgs)), ledger.AnswerFailedFinal, 0)
		t.want(s.call(strictly("b", theArgs)), ledger.AnswerFailedRetryable, 0)
		t.want(s.call(strictly("c", theArgs)), ledger.AnswerSucceeded, 1)
		pass(time.Minute) // its turn to be tried again, and no room
		t.wantExceeded(s, strictly("b", theArgs), "limits.per_workflow.count")
	})
	inWorldNamed(t, "an unknown keeps its place until it is settled", func(t *world) {
		t.rules = limits(ledger.Limit{Scope: ledger.PerWorkflow, Max: 1})
		s := t.start()
		op := t.inReview(s, losesRequest)
		t.wantExceeded(s, strictly("b", theArgs), "limits.per_workflow.count")
		pass(lease + settle + lag)
		if _, err := s.Resolve(t.Context(), op.ID, ledger.Drop, "", 1, anna); err != nil {
			t.Fatal(err)
		}
		t.want(s.call(strictly("b", theArgs)), ledger.AnswerSucceeded, 1)
	})
	inWorldNamed(t, "a look-up that settles it counts once", func(t *world) {
		t.rules = limits(ledger.Limit{Scope: ledger.PerWorkflow, Max: 2})
		t.provider.will(losesReply)
		s := t.start()
		t.want(s.call(strictly("a", theArgs)), ledger.AnswerUnknown, 1)
		pass(lease + settle + lag)
		t.want(s.call(strictly("a", theArgs)), ledger.AnswerSucceeded, 1) // looked up
		t.want(s.call(strictly("b", theArgs)), ledger.AnswerSucceeded, 2)
		t.wantExceeded(s, strictly("c", theArgs), "limits.per_workflow.count")
	})
}

func TestLimitScopes(t *testing.T) {
	inWorldNamed(t, "runs, and the workflow where there is none", func(t *world) {
		t.rules = limits(ledger.Limit{Scope: ledger.PerRun, Max: 1})
		s := t.start()
		s.call(in("w1", "r1", "a", 1))
		t.wantExceeded(s, in("w2", "r1", "b", 1), "limits.per_run.count")
		s.call(in("w1", "r2", "c", 1))
		s.call(in("r1", "", "d", 1)) // a workflow that is called like a run
		t.wantExceeded(s, in("r1", "", "e", 1), "limits.per_run.count")
		s.call(in("", "", "f", 1))
		s.call(in("", "", "g", 1)) // nothing to count it by
	})
	inWorldNamed(t, "amounts, by currency", func(t *world) {
		t.rules = limits(ledger.Limit{Scope: ledger.PerWorkflow, Currency: "USD", Max: 500, Text: "5.00 USD"}, ledger.Limit{Scope: ledger.PerWorkflow, Currency: "EUR", Max: 1},
			ledger.Limit{Scope: ledger.PerRun, Max: 100})
		s := t.start()
		s.call(in("w", "", "a", 400))
		refusal := t.wantExceeded(s, in("w", "", "b", 101), "limits.per_workflow.amount.USD")
		if !strings.Contains(refusal.Message, "5.00 USD of refund per workflow") {
			t.Errorf("it says %q, want the bound", refusal.Message)
		}
		s.call(in("w", "", "c", 100))
		t.wantExceeded(s, in("w", "", "d", 1), "limits.per_workflow.amount.USD")
		euros := in("w", "", "e", 1)
		euros.Amount.Currency = "EUR"
		s.call(euros)
		yen := in("w", "", "f", 1)
		yen.Amount.Currency = "JPY" // which has no bound, where others have
		t.wantExceeded(s, yen, "limits.per_workflow.amount.JPY")
	})
	inWorldNamed(t, "days begin where the zone says, and the refusal says when", func(t *world) {
		zone := time.FixedZone("east", 5*3600)
		t.rules = ledger.Rules{Zone: zone, Limits: []ledger.Limit{{Scope: ledger.PerDay, Max: 1}}}
		s := t.start()
		s.call(in("w", "", "a", 1))
		refusal := t.wantExceeded(s, in("w", "", "b", 1), "limits.per_day.count")
		now := time.Now().In(zone)
		midnight := time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, zone)
		if refusal.RetryAfter != midnight.Sub(now) || !strings.Contains(refusal.Message, midnight.Format(time.RFC3339)) {
			t.Errorf("it frees in %v: %s; want at %v", refusal.RetryAfter, refusal.Message, midnight)
		}
		pass(refusal.RetryAfter - time.Second)
		t.wantExceeded(s, in("w", "", "b", 1), "limits.per_day.count")
		pass(time.Second)
		s.call(in("w", "", "b", 1))
	})
	inWorldNamed(t, "tenants have days of their own, and share per_day", func(t *world) {
		t.rules = limits(ledger.Limit{Scope: ledger.PerTenant, Max: 1}, ledger.Limit{Scope: ledger.PerDay, Max: 2})
		s := t.start()
		of := func(tenant, name string) ledger.Request {
			r := in("w", "", name, 1)
			r.Tenant = tenant
			return r
		}
		s.call(of("one", "a"))
		t.wantExceeded(s, of("one", "b"), "limits.per_tenant.count")
		s.call(of("two", "c"))
		t.wantExceeded(s, of("three", "d"), "limits.per_day.count")
	})
	inWorldNamed(t, "every limit has to have room, and one that has none leaves the others as they were", func(t *world) {
		t.rules = limits(ledger.Limit{Scope: ledger.PerRun, Max: 2}, ledger.Limit{Scope: ledger.PerWorkflow, Max: 1})
		s := t.start()
		s.call(in("w1", "r", "a", 1))
		for range 3 {
			t.wantExceeded(s, in("w1", "r", "b", 1), "limits.per_workflow.count")
		}
		s.call(in("w2", "r", "c", 1))
	})
}

func TestFills(t *testing.T) {
	inWorld(t, func(t *world) {
		t.rules = limits(ledger.Limit{Scope: ledger.PerDay, Max: 4}, ledger.Limit{Scope: ledger.PerRun, Max: 2}, ledger.Limit{Scope: ledger.PerWorkflow, Currency: "USD", Max: 500})
		s := t.start()
		s.call(in("w", "r1", "yesterday", 1))
		pass(24 * time.Hour)
		s.call(in("w", "r1", "a", 100))
		s.call(in("w", "", "b", 149))
		fills, err := s.Fills(t.Context())
		var got []string
		for _, f := range fills {
			got = append(got, fmt.Sprintf("%s %s %d of %d, frees %t", f.Limit, f.Of, f.Used, f.Limit.Max, !f.FreesAt.IsZero()))
		}
		want := []string{
			"per_run.count r1 2 of 2, frees false",
			"per_day.count 2000-01-02 2 of 4, frees true",
			"per_workflow.amount.USD w 250 of 500, frees false",
			"per_run.count workflow:w 1 of 2, frees false",
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("fills (-want +got):\n%s%v", diff, err)
		}
	})
}
