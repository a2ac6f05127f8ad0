package providertest

import (
	"path/filepath"
	"testing"

	"github.com/onceward/onceward/ledger/sqlite"
)

// Rehearse takes one operation through a ledger of its own, with its first attempt lost
// as told, and wants the end that the provider's traits promise. It is for peers that
// aren't ours: the fake is then a proxy to the peer, and Effects asks the peer. Of the
// fake's other functions none is needed.
func Rehearse(t *testing.T, h Harness, loss Loss) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}()
	w := h.newWorld(t, store, &journal{}, "")
	w.trial.peer.Lose(loss)
	w.execute()
	w.want(w.settle(), loss.expected(h.traits(t)))
	w.wantReplay("")
}
