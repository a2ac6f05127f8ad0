package ledgertest

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/google/go-cmp/cmp"
)

var placeTests = map[string]func(*tester){
	"everything is there after closing and opening": func(t *tester) {
		all := t.population()
		open := t.insert(strict(800))
		all = append(all, open)
		history := t.history(all[3].ID)
		if err := t.store.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
		t.store = t.open()
		if diff := cmp.Diff(all, t.all()); diff != "" {
			t.Errorf("operations (-before +after):\n%s", diff)
		}
		if diff := cmp.Diff(history, t.history(all[3].ID)); diff != "" {
			t.Errorf("history (-before +after):\n%s", diff)
		}
		if got, want := t.sealed(open.ID), string(seal(open)); got != want {
			t.Errorf("Sealed = %q, want %q", got, want)
		}
	},
	"two stores in one place see each other's work": func(t *tester) {
		op := t.insert(strict(1))
		other := &tester{T: t.T, open: t.open, store: t.open()}
		other.wantStored(op)
		op = other.succeed(op)
		t.wantStored(op)
		m, err := fails(t.insert(strict(2)))
		if err != nil {
			t.Fatal(err)
		}
		other.record(m, nil)
		t.wantStale(m)
	},
	"a closed store writes and reads nothing": func(t *tester) {
		op := t.insert(strict(1))
		if err := t.store.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
		m, err := succeeds(op)
		if err != nil {
			t.Fatal(err)
		}
		if err := t.store.Record(t.Context(), m); err == nil {
			t.Error("Record wrote to a closed store")
		}
		if _, err := t.store.Sealed(t.Context(), op.ID); err == nil {
			t.Error("Sealed read from a closed store")
		}
	},
	"remembers the first value, for ever and for all": func(t *tester) {
		t.wantRemembered("secret_check", "one", "one")
		t.wantRemembered("secret_check", "two", "one")
		t.wantRemembered("other", "two", "two")
		other := &tester{T: t.T, store: t.open()}
		other.wantRemembered("secret_check", "three", "one")
	},
	"many who remember at once agree": func(t *tester) {
		var mu sync.Mutex
		kept := map[string]bool{}
		t.race(func(i int) error {
			got, err := t.store.Remember(t.Context(), "secret_check", fmt.Append(nil, i))
			mu.Lock()
			defer mu.Unlock()
			kept[string(got)] = true
			return err
		})
		if len(kept) != 1 {
			t.Errorf("they got %d different values, want one", len(kept))
		}
	},
}

func (t *tester) wantRemembered(name, value, want string) {
	t.Helper()
	got, err := t.store.Remember(t.Context(), name, []byte(value))
	if err != nil || !bytes.Equal(got, []byte(want)) {
		t.Errorf("Remember(%q, %q) = %q, %v; want %q", name, value, got, err, want)
	}
}
