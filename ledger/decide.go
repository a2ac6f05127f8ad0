package ledger

import (
	"encoding/json"
	"slices"
	"time"
)

// What a call has to do next, as decided inside the transaction that read the
// operation.
type next int

const (
	reply     next = iota // the ledger has the answer
	refuse                // a conflict
	attempt               // the claim is ours
	wait                  // somebody else's attempt is under way
	reconcile             // it may have happened: look
)

// A decision is made once per call; it holds at the moment of the commit.
type decision struct {
	next     next
	op       Operation
	replayed bool
	ignored  []string
	refusal  *Refusal
	alike    string // the operation that a new one looks like
	sealed   []byte // what was just sealed with it, if this call made it
}

// maxNotedConflicts bounds how many conflicts leave a line in an operation's history; an
// agent in a loop can't grow it for ever. The first ones tell the story.
const maxNotedConflicts = 16

// A decider decides one call. It is pure: what it needs of the world comes in.
type decider struct {
	request *Request
	actor   Actor
	policy  Policy
	rules   Rules
	used    map[string]int64 // of the limits it may take of
	owner   string
	now     time.Time
	newID   string
	seal    func(op Operation) ([]byte, error) // renders and seals what will be sent
}

// decide is the heart of Begin: what is there, and what follows from it.
func (d *decider) decide(found Found) (decision, Move, error) {
	d.used = found.Used
	if d.request.BaseKey.IsZero() {
		if found.Operation == nil {
			return d.begin(d.operation(d.request.Key, d.request.Intent.Revision), found.Alike)
		}
		return d.existing(*found.Operation)
	}
	return d.byWorkflow(found)
}

// byWorkflow decides where the model's own arguments name the action. Two rules help
// it: a new name for what was just done, and a late repeat with changed content,
// wait for a person instead of acting or claiming success.
func (d *decider) byWorkflow(found Found) (decision, Move, error) {
	r := d.request
	if found.Operation == nil {
		op := d.operation(r.KeyAt(1), 1)
		if found.Alike != nil {
			return d.planNew(op, ApprovalAlike, found.Alike.ID)
		}
		return d.begin(op, nil)
	}
	newest := *found.Operation
	if same := found.SameContent; same != nil && same.Fingerprint == r.Digest.Fingerprint && same.ID != newest.ID && !d.repeatAllowed(newest) {
		return d.existing(*same) // a late repeat of an earlier revision, to the letter
	}
	if d.repeatAllowed(newest) {
		return d.begin(d.operation(r.KeyAt(newest.Intent.Revision+1), newest.Intent.Revision+1), nil)
	}
	changed := newest.Content != r.Digest.Content && newest.Fingerprint == r.Digest.Fingerprint
	if changed && newest.Status == Succeeded && d.now.Sub(newest.CompletedAt) > d.policy.ReplayWithin {
		return d.planNew(d.operation(r.KeyAt(newest.Intent.Revision+1), newest.Intent.Revision+1), ApprovalLateChange, newest.ID)
	}
	return d.existing(newest)
}

// repeatAllowed reports whether a person has allowed one more of op. The next revision
// spends the permission, by being newer.
func (d *decider) repeatAllowed(op Operation) bool {
	return op.Status.Final() && d.now.Before(op.Repeat.Until) &&
		(op.Repeat.SameContent || op.Content != d.request.Digest.Content)
}

// begin starts a new operation: at once, or when a person has agreed.
func (d *decider) begin(op Operation, alike *Operation) (decision, Move, error) {
	switch {
	case d.request.Approval != "":
		return d.planNew(op, d.request.Approval, idOf(alike))
	case alike != nil && d.rules.SecondIntent == SecondIntentApprove:
		return d.planNew(op, ApprovalSecondIntent, alike.ID)
	}
	return d.claimNew(op, idOf(alike))
}

func idOf(op *Operation) string {
	if op == nil {
		return ""
	}
	return op.ID
}

// existing decides about an operation that is there.
func (d *decider) existing(op Operation) (decision, Move, error) {
	if op.Fingerprint != d.request.Digest.Fingerprint {
		if op.Status == FailedFinal && op.Attempts == 0 {
			return d.replan(op)
		}
		return d.conflict(op)
	}
	known := decision{next: reply, op: op, replayed: true, ignored: d.ignored(op)}
	switch op.Status {
	case Planned:
		if !d.now.Before(op.ExpiresAt) {
			return d.moved(known)(op.Fail(d.now, CodeApprovalExpired, Note{d.by("call"), "expired", nil}))
		}
		if op.Approval.State != Approved || op.Review.Open() {
			return known, Move{}, nil
		}
		return d.claimInScope(op, known)
	case FailedRetryable:
		if !d.now.Before(op.ExpiresAt) {
			return d.moved(known)(op.Fail(d.now, CodeRetryExpired, Note{d.by("call"), "retry_over", nil}))
		}
		if op.Review.Open() || d.now.Before(op.NextCheckAt) {
			return known, Move{}, nil
		}
		return d.claimInScope(op, known)
	case Executing:
		known.next = wait
		if !d.now.Before(op.LeaseUntil) {
			known.next = reconcile
		}
	case Unknown:
		known.next = reconcile
	case Succeeded, FailedFinal:
	}
	return known, Move{}, nil
}

// claimInScope claims an operation unless its provider, account or mode is another one by
// now: what was rendered for one is never sent to another.
func (d *decider) claimInScope(op Operation, known decision) (decision, Move, error) {
	if !op.inScope(d.actor) {
		return d.moved(known)(op.Ask(d.now, "", ReviewScopeChanged, Note{d.by("call"), "scope_changed", nil}))
	}
	return d.claim(op)
}

// inScope reports whether op's attempts met what an attempt would meet now. Before
// the first one, and after a person allowed one more, only the provider counts.
func (op Operation) inScope(a Actor) bool {
	return op.Provider == a.Provider && (op.Scope == "" || op.Scope == a.Scope)
}

// operation is the record that the call would make.
func (d *decider) operation(k Key, revision int) Operation {
	r := d.request
	intent := r.Intent
	intent.Revision = revision
	return Operation{
		ID: d.newID, Key: k, BaseKey: r.BaseKey, Tenant: r.Tenant, Action: r.Action, Intent: intent,
		Fingerprint: r.Digest.Fingerprint, Content: r.Digest.Content, Alike: r.Digest.Alike, Fields: r.Digest.Fields,
		Amount: r.Amount, Provider: d.actor.Provider,
	}
}

func (d *decider) claimNew(op Operation, alike string) (decision, Move, error) {
	right, refusal := d.right(op)
	if refusal != nil {
		return decision{next: refuse, op: Operation{Action: op.Action}, refusal: refusal}, Move{}, nil // there is none with this id
	}
	sealed, err := d.seal(op)
	if err != nil {
		return decision{}, Move{}, err
	}
	return d.moved(decision{next: attempt, alike: alike})(op.Insert(right, sealed, Note{d.by("call"), "claimed", because(alike)}))
}

func (d *decider) claim(op Operation) (decision, Move, error) {
	right, refusal := d.right(op)
	if refusal != nil {
		refusal.OperationID = op.ID
		return decision{next: refuse, op: op, refusal: refusal}, Move{}, nil
	}
	return d.moved(decision{next: attempt, ignored: d.ignored(op)})(op.Claim(right, Note{d.by("call"), "claimed", nil}))
}

// right is the claim that a call makes, unless a limit is used up. Only operations without an
// unsettled attempt are claimed by calls, so the outcome stands alone.
func (d *decider) right(op Operation) (Claim, *Refusal) {
	takes, refusal := d.rules.allow(op, d.used, d.now)
	return Claim{
		Owner: d.owner, At: d.now, Lease: d.actor.Promise.Lease, Provider: d.actor.Provider, Scope: d.actor.Scope,
		Settled: true, Generation: op.Generation, Takes: takes,
	}, refusal
}

func (d *decider) planNew(op Operation, why, alike string) (decision, Move, error) {
	sealed, err := d.seal(op)
	if err != nil {
		return decision{}, Move{}, err
	}
	need := Approval{Reason: why, Run: d.rules.RunOnApproval}
	return d.moved(decision{next: reply, alike: alike})(op.Plan(d.now, d.lapses(), need, sealed, Note{d.by("call"), why, because(alike)}))
}

// because is the evidence that names the operation which a new one looks like.
func because(alike string) json.RawMessage {
	if alike == "" {
		return nil
	}
	return evidence(map[string]string{"operation_id": alike})
}

// lapses is when a wait for a person is over.
func (d *decider) lapses() time.Time {
	return d.now.Add(either(d.rules.ApprovalFor, d.policy.ApprovalFor))
}

func (d *decider) replan(op Operation) (decision, Move, error) {
	sealed, err := d.seal(op)
	if err != nil {
		return decision{}, Move{}, err
	}
	note := Note{d.by("call"), "new_arguments", nil}
	return d.moved(decision{next: reply})(op.Replan(d.now, d.lapses(), d.request, sealed, note))
}

// conflict refuses a call that has the name of one action and the critical arguments
// of another, and notes it in the history.
func (d *decider) conflict(op Operation) (decision, Move, error) {
	fields := only(d.request.Digest.Critical, differing(op.Fields, d.request.Digest.Fields))
	refused := decision{next: refuse, op: op, refusal: &Refusal{Code: OperationConflict, Fields: fields, OperationID: op.ID}}
	if op.Conflicts >= maxNotedConflicts {
		return refused, Move{}, nil
	}
	note := Note{d.by("call"), "conflict", evidence(map[string]any{"fields": fields})}
	return d.moved(refused)(op.Observe(d.now, note, func(o *Operation) { o.Conflicts++ }))
}

// moved completes a decision with the state that the move leads to.
func (d *decider) moved(known decision) func(Move, error) (decision, Move, error) {
	return func(m Move, err error) (decision, Move, error) {
		known.op = m.to
		return known, m, err
	}
}

func (d *decider) by(what string) string { return what + ":" + d.owner }

// ignored names the arguments in which a call differs from the operation's first one,
// other than in what matters. A tombstone no longer knows.
func (d *decider) ignored(op Operation) []string {
	if op.Pruned || op.Content == d.request.Digest.Content {
		return nil
	}
	return differing(op.Fields, d.request.Digest.Fields)
}

func differing(a, b FieldHashes) []string {
	var names []string
	for name, hash := range a {
		if other, ok := b[name]; !ok || other != hash {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// only keeps the names that are in set.
func only(set, names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(set, name) })
}
