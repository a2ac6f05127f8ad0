package compare_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
)

// TestBank checks the measure itself: parts of a payment are given back until it is used up,
// and a key acts once.
func TestBank(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	b.open("pay-1", 1000)
	for _, call := range []struct {
		key, amount string
		status      int
		left        []int64
	}{
		{"a", "400", 200, []int64{400}},
		{"a", "400", 200, []int64{400}},
		{"a", "401", 422, []int64{400}},
		{"b", "400", 200, []int64{400, 400}},
		{"c", "400", 422, []int64{400, 400}},
		{"d", "200", 200, []int64{400, 400, 200}},
		{"e", "1", 422, []int64{400, 400, 200}},
		{"", "1", 400, []int64{400, 400, 200}},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.server.URL, strings.NewReader(`{"payment_id":"pay-1","amount_minor":`+call.amount+`,"currency":"USD"}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Idempotency-Key", call.key)
		reply, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, reply.Body)
		reply.Body.Close()
		if reply.StatusCode != call.status {
			t.Errorf("key %q, %s cents: status %d, want %d", call.key, call.amount, reply.StatusCode, call.status)
		}
		if diff := cmp.Diff(call.left, b.refunds("pay-1")); diff != "" {
			t.Errorf("key %q, %s cents: the journal (-want +got):\n%s", call.key, call.amount, diff)
		}
	}
}

// TestJudge has one run of each kind.
func TestJudge(t *testing.T) {
	t.Parallel()
	one, both := map[int64]int{500: 1}, map[int64]int{500: 1, 700: 1}
	for name, tt := range map[string]struct {
		meant    map[int64]int
		happened []int64
		heard    map[int]told
		want     tally
	}{
		"right":                     {both, []int64{700, 500}, map[int]told{1: done, 2: done}, tally{right: 1}},
		"right, and nobody knows":   {one, []int64{500}, map[int]told{1: "failed"}, tally{right: 1, toldFailed: 1}},
		"twice":                     {one, []int64{500, 500}, map[int]told{1: done}, tally{twice: 1}},
		"another amount":            {one, []int64{500, 600}, map[int]told{1: done}, tally{twice: 1}},
		"one twice, another never":  {both, []int64{500, 500}, map[int]told{1: done, 2: done}, tally{twice: 1}},
		"never, and it is said":     {both, []int64{500}, map[int]told{1: done, 2: "operation_conflict"}, tally{blocked: 1}},
		"never, and done is said":   {both, []int64{500}, map[int]told{1: done, 2: done}, tally{blocked: 1, toldDone: 1}},
		"one of two equal ones":     {map[int64]int{500: 2}, []int64{500}, map[int]told{1: done, 2: done}, tally{blocked: 1, toldDone: 1}},
		"both of two equal ones":    {map[int64]int{500: 2}, []int64{500, 500}, map[int]told{1: done, 2: done}, tally{right: 1}},
		"nothing happened, unheard": {one, nil, map[int]told{1: ""}, tally{blocked: 1}},
	} {
		var got tally
		if got.judge(tt.meant, tt.happened, tt.heard); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

// TestClaims checks that the other two ways are no straw men: a second process leaves a claim
// alone for as long as its owner may be alive, takes it over after that, and a result stays.
func TestClaims(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	folder := t.TempDir()
	first, second := openKeyed(t, folder, w, position), openKeyed(t, folder, w, position)
	defer first.close(t)
	defer second.close(t)
	claims := func(k *keyed) bool {
		t.Helper()
		_, claimed, err := k.claim(t.Context(), "key")
		if err != nil {
			t.Fatal(err)
		}
		return claimed
	}
	steps := []struct {
		what string
		by   *keyed
		wait bool
		want bool
	}{
		{"nobody has it", first, false, true},
		{"the other one has it", second, false, false},
		{"the other one is dead", second, true, true},
		{"it was taken over", first, false, false},
	}
	for _, s := range steps {
		if s.wait {
			w.clock.Advance(claimFor)
		}
		if got := claims(s.by); got != s.want {
			t.Errorf("%s: claimed %t, want %t", s.what, got, s.want)
		}
	}
}

// TestOneIDForTwoAmounts shows that this mistake of an orchestrator is refused aloud.
func TestOneIDForTwoAmounts(t *testing.T) {
	t.Parallel()
	w := newWriter(0, 0)
	oneID(w, false)
	heard := newStage(t, ways[len(ways)-1]).run(w.script)
	if diff := cmp.Diff(map[int]told{1: done, 2: "operation_conflict"}, heard); diff != "" {
		t.Errorf("what was heard of each action (-want +got):\n%s", diff)
	}
}

// TestNewIDForARetry shows what helps against this mistake: a look-alike under another id
// waits for a person where the rules say so.
func TestNewIDForARetry(t *testing.T) {
	t.Parallel()
	careful := way{"with second_intent: approve", func(t testing.TB, folder string, w world) process {
		return openGuarded(t, folder, w, ledger.Rules{SecondIntent: ledger.SecondIntentApprove})
	}}
	w := newWriter(0, 0)
	newID(w)
	s := newStage(t, careful)
	heard := s.run(w.script)
	if diff := cmp.Diff(map[int]told{1: "awaiting_approval"}, heard); diff != "" {
		t.Errorf("what was heard of each action (-want +got):\n%s", diff)
	}
	if n := len(s.bank.refunds(w.payment)); n != 1 {
		t.Errorf("%d refunds, want 1", n)
	}
}
