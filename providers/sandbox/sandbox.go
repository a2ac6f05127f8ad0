// Package sandbox is a provider of mail, payment orders and refunds on which nothing
// real hangs: the default of all three tools, for dry runs and drills.
//
// It behaves like a provider on another machine. Its journal is a file of its own,
// apart from the ledger: what it did, and which keys it remembers. It can be told to
// misbehave in the ways that real providers and networks do (see [FaultKind]), and to
// do without idempotency or look-up.
package sandbox

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/onceward/onceward/providers"
)

// Name is the provider's name in ledgers and configurations.
const Name = "sandbox"

// A Sandbox is a [providers.Provider]. It is safe for concurrent use, and several
// processes may open the same journal.
type Sandbox struct {
	journal *journal
	options Options
}

var _ providers.Provider = (*Sandbox)(nil)

// Open opens the journal at path, and makes it, with its directory, if there is none.
// The error is an *[OptionError] if the options don't fit together.
func Open(ctx context.Context, path string, o Options) (*Sandbox, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	j, err := createJournal(ctx, path)
	if err != nil {
		return nil, err
	}
	return &Sandbox{journal: j, options: o}, nil
}

// Inspect opens a journal that exists for reading only: for [Sandbox.Effects]. The
// error is fs.ErrNotExist if there is none.
func Inspect(ctx context.Context, path string) (*Sandbox, error) {
	o, err := DefaultOptions().complete()
	if err != nil {
		return nil, err
	}
	j, err := readJournal(ctx, path)
	if err != nil {
		return nil, err
	}
	return &Sandbox{journal: j, options: o}, nil
}

// Close closes the journal. Calls under way fail.
func (s *Sandbox) Close() error { return s.journal.close() }

// Scope names this provider's account, hashed: another journal is another one.
func (s *Sandbox) Scope() string {
	sum := sha256.Sum256([]byte(Name + "|" + s.journal.id))
	return hex.EncodeToString(sum[:16])
}

// Traits implements [providers.Provider]: what the options make of it.
func (s *Sandbox) Traits(action string) (t providers.Traits, ok bool) {
	if !slices.Contains(actions, action) {
		return providers.Traits{}, false
	}
	o := s.options
	t = providers.Traits{
		Deadline: o.Deadline,
		Lease:    o.Lease,
		Settle:   o.Settle,
		Window:   o.Window,
		// A claim's last request is sent before its lease is over, and the window
		// runs from when the first one came.
		Margin:        o.Lease,
		Reuse:         providers.ReuseActs,
		CachesErrors:  true, // cached-error
		LookupLag:     o.Lag,
		ProvesAbsence: o.Lookup,
	}
	if o.Idempotent {
		t.Key, t.Reuse = providers.KeyInHeader, providers.ReuseRefused
	}
	if o.Lookup {
		t.Lookup = providers.LookupByKey
	}
	return t, true
}

// randomID makes an object's id, which can't be guessed and never comes twice.
func randomID(prefix string) string { return prefix + rand.Text() }
