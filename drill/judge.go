package drill

import (
	"context"
	"fmt"
	"slices"

	"github.com/onceward/onceward/ledger"
)

// judge compares the outside world with the ledger, and makes the scenario's result.
func (st *stage) judge(ctx context.Context, scenario string) (Result, error) {
	r := Result{Action: st.subject.Action, Provider: st.subject.Provider, Scenario: scenario, Calls: st.calls, KnownAfter: Seconds(st.knownAfter)}
	all, err := st.found(ctx)
	if err != nil {
		return r, err
	}
	effects, err := st.outside.effects(ctx)
	if err != nil {
		return r, err
	}
	for _, n := range effects {
		r.Effects += n
	}
	var review string
	for _, op := range all {
		st.promises(op, effects)
		if op.Review.Open() && review == "" {
			review = op.Review.Reason
		}
	}
	for key := range effects {
		st.must(slices.ContainsFunc(all, func(op ledger.Operation) bool { return slices.Contains(keys(op), key) }), "something happened that no call asked for")
	}
	if r.Happened, err = st.happened(ctx, all); err != nil {
		return r, err
	}
	switch {
	case len(st.problems) > 0:
		r.Verdict, r.Problem, r.Setting = Broken, st.problems[0], st.subject.mend(r.Effects)
	case review != "":
		r.Verdict, r.Asked, r.Setting = PersonAsked, questions[review], st.subject.spare(review)
	case st.asked != "":
		r.Verdict, r.Asked = PersonAsked, st.asked
	default:
		r.Verdict = Held
	}
	return r, nil
}

// promises are what holds for every operation, whatever went wrong.
func (st *stage) promises(op ledger.Operation, effects map[string]int) {
	n := 0
	for _, key := range keys(op) {
		n += effects[key]
	}
	st.must(n <= 1, "one action happened %d times", n)
	switch op.Status {
	case ledger.Succeeded:
		st.must(n > 0, "it is succeeded, and nothing happened")
	case ledger.FailedFinal, ledger.FailedRetryable:
		st.must(n == 0, "it is %s, and it happened", op.Status)
	case ledger.Unknown:
		st.must(op.Review.Open() || !op.NextCheckAt.IsZero(), "it is unknown, and neither automation nor a person looks")
	case ledger.Executing:
		st.must(st.clock.Now().Before(op.LeaseUntil), "it is executing after its lease")
	case ledger.Planned:
		st.must(n == 0, "it waits for a person, and it happened")
	}
	st.must(op.Attempts == 0 || op.Approval.State == ledger.Spent || op.Approval.State == ledger.NotNeeded, "it ran and its approval is %s", op.Approval.State)
}

// keys are all under which the provider may know an operation.
func keys(op ledger.Operation) []string {
	var all []string
	for g := range op.Generation + 1 {
		all = append(all, ledger.ProviderKey(op.Key, g))
	}
	return all
}

// expect compares an answer with what is promised.
func (st *stage) expect(when string, a answer, status string) {
	st.must(a.Status == status, "%s got %s, not %s", when, a, status)
}

// same expects that a call got the first one's result, as success.
func (st *stage) same(when string, first, a answer) {
	st.expect(when, a, succeeded)
	st.must(a.Replayed, "%s wasn't told that it is a repeat", when)
	st.must(a.ProviderOperationID == first.ProviderOperationID, "%s got another result than the first call", when)
}

// effectsNow expects so many effects by now.
func (st *stage) effectsNow(ctx context.Context, when string, want int) error {
	effects, err := st.outside.effects(ctx)
	n := 0
	for _, found := range effects {
		n += found
	}
	st.must(n == want, "%s: %d effects, not %d", when, n, want)
	return err
}

// questions are what a person is asked in a review.
var questions = map[string]string{
	ledger.ReviewUnverifiable:  "Did it happen? Nobody but the provider's own books can tell.",
	ledger.ReviewAttemptsUsed:  "Did it happen? All attempts that were safe are used up.",
	ledger.ReviewErrorKept:     "The provider keeps an error under this key. Did it happen, and may it be tried under a new key?",
	ledger.ReviewContradiction: "The provider shows what can't be: two objects, or another one. Which of them is right?",
	ledger.ReviewScopeChanged:  "The credential or the account is another one than at the first attempt. Did it happen there?",
}

// happened tells in words what became of the scenario: its own story, or its first operation's.
func (st *stage) happened(ctx context.Context, all []ledger.Operation) (string, error) {
	if len(st.story) > 0 {
		return sentence(st.story), nil
	}
	if len(all) == 0 {
		return "nothing was begun", nil
	}
	op := all[0]
	history, err := st.reader().History(ctx, op.ID)
	if err != nil {
		return "", err
	}
	steps := append(steps(history), ending(op))
	if st.knownAfter > 0 {
		steps[len(steps)-1] += fmt.Sprintf(" after %s", text(st.knownAfter))
	}
	return sentence(steps), nil
}
