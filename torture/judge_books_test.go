package torture

import (
	"encoding/json"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
)

// legal are the moves that an operation may make, written anew from what the statuses mean.
var legal = map[[2]ledger.Status]bool{
	{"", "planned"}:                          true,
	{"", "executing"}:                        true,
	{"planned", "executing"}:                 true,
	{"planned", "failed_final"}:              true,
	{"executing", "succeeded"}:               true,
	{"executing", "failed_final"}:            true,
	{"executing", "failed_retryable"}:        true,
	{"executing", "unknown"}:                 true,
	{"failed_retryable", "executing"}:        true,
	{"failed_retryable", "failed_final"}:     true,
	{"failed_retryable", "succeeded"}:        true, // a late success
	{"unknown", "succeeded"}:                 true,
	{"unknown", "failed_final"}:              true,
	{"unknown", "executing"}:                 true,
	{"failed_final", "planned"}:              true, // if it was never attempted
	{"failed_final", "succeeded"}:            true, // a late success
	{"planned", "planned"}:                   true, // something was noted
	{"executing", "executing"}:               true,
	{"succeeded", "succeeded"}:               true,
	{"failed_retryable", "failed_retryable"}: true,
	{"failed_final", "failed_final"}:         true,
	{"unknown", "unknown"}:                   true,
}

func (w *world) judgeHistory(op *ledger.Operation) {
	history, err := w.store.History(w.t.Context(), op.ID)
	if err != nil {
		w.fail("History: %v", err)
		return
	}
	if len(history) > op.Moves && !w.exact() {
		history = history[:op.Moves] // it has moved since it was read
	}
	if len(history) != op.Moves {
		w.fail("it has moved %d times, and its history has %d lines", op.Moves, len(history))
		return
	}
	status, attempt, approved := ledger.Status(""), 0, false
	for n, line := range history {
		if line.To == ledger.Executing && line.From != ledger.Executing {
			attempt++
		}
		if line.Seq != n+1 || line.From != status || line.Attempt != attempt || line.Actor == "" || line.Reason == "" {
			w.fail("line %d of the history doesn't follow: %+v after status %q, attempt %d", n+1, line, status, attempt)
		}
		if !legal[[2]ledger.Status{line.From, line.To}] {
			w.fail("line %d of the history is no legal move: %q to %q", n+1, line.From, line.To)
		}
		if line.To == ledger.Succeeded && line.From != ledger.Succeeded && len(line.Evidence) == 0 {
			w.fail("line %d of the history has no evidence for success", n+1)
		}
		if line.From == ledger.Planned && line.To == ledger.Executing && !approved {
			w.fail("line %d of the history claims what nobody approved", n+1)
		}
		approved = line.From == ledger.Planned && (approved || line.Reason == "approved")
		status = line.To
	}
	if status != op.Status || attempt != op.Attempts {
		w.fail("the history ends at %q, attempt %d; it is %q, attempt %d", status, attempt, op.Status, op.Attempts)
	}
}

// A count is what a limit counts, whatever the day.
type count struct{ action, scope, who, currency string }

func countOf(op *ledger.Operation, l ledger.Limit) (c count, n int64, counts bool) {
	c, n = count{op.Action, string(l.Scope), "", l.Currency}, 1
	if l.Currency != "" {
		n = op.Amount.Minor
	}
	switch l.Scope {
	case ledger.PerRun:
		if c.who = "run:" + op.Intent.RunID; op.Intent.RunID == "" {
			c.who = "workflow:" + op.Intent.WorkflowID
		}
	case ledger.PerWorkflow:
		c.who = op.Intent.WorkflowID
	case ledger.PerDay, ledger.PerTenant:
	}
	return c, n, l.Currency == "" || l.Currency == op.Amount.Currency
}

// judgeLimits counts anew, from the operations, and compares with what the store counts and
// with what the limits allow.
func (w *world) judgeLimits(ops map[int]*ledger.Operation) {
	limits := w.plot.Rules.Limits
	if len(limits) == 0 {
		return
	}
	want, got, broken := map[count]int64{}, map[count]int64{}, false
	effects := map[count]int64{}
	for i := range w.plot.Ops {
		op := ops[i]
		if op == nil {
			continue
		}
		broken = broken || w.model.isBroken(i)
		for _, l := range limits {
			c, n, counts := countOf(op, l)
			if !counts {
				continue
			}
			if op.Status == ledger.Executing || op.Status == ledger.Unknown || op.Status == ledger.Succeeded {
				want[c] += n
			}
			effects[c] += n * int64(len(live(w.model.done(i))))
			if perDay := l.Scope == ledger.PerDay || l.Scope == ledger.PerTenant; !perDay && effects[c] > l.Max && !broken {
				w.fail("%v allows %d, and the effects make %d", l, l.Max, effects[c])
			}
		}
	}
	used, err := w.store.Usage(w.t.Context(), nil)
	if err != nil {
		w.fail("Usage: %v", err)
	}
	for bucket, n := range used {
		var name [6]string // action, scope, tenant, who, day, currency
		if err := json.Unmarshal([]byte(bucket), &name); err != nil {
			w.fail("the bucket %s: %v", bucket, err)
		}
		if w.foreign(name) {
			continue
		}
		if n != 0 {
			got[count{name[0], name[1], name[3], name[5]}] += n
		}
		for _, l := range limits {
			if name[1] == string(l.Scope) && name[5] == l.Currency && n > l.Max && !broken {
				w.fail("%v allows %d, and %d are taken", l, l.Max, n)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" && !broken {
		w.fail("what operations hold of limits (-want +counted):\n%s", diff)
	}
}

// foreign counts belong to other schedules on the same store.
func (w *world) foreign(name [6]string) bool {
	return name[3] != "" && !strings.Contains(name[3], w.key) && !strings.HasPrefix(name[3], "run:")
}

// judgeAudit demands that the trail proves every line.
func (w *world) judgeAudit(srv *server) {
	var report ledger.AuditReport
	var err error
	w.wait(func() { report, err = srv.VerifyAudit(w.t.Context(), "") })
	if err != nil {
		w.fail("VerifyAudit: %v", err)
	}
	if len(report.Problems) > 0 {
		w.fail("the audit trail: %+v", report.Problems)
	}
	if report.Operations == 0 && w.tally.schedules.Load() > 0 {
		for i := range w.plot.Ops {
			if w.find(i) != nil {
				w.fail("the audit trail holds no operation")
			}
		}
	}
}
