package drill

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers/sandbox"
)

// identityScenarios are about secrets and credentials that change.
func identityScenarios() []scenario {
	return []scenario{
		{"a server starts with another secret", nil, otherSecret},
		{"the credential changes while one is unknown", nil, otherCredential},
	}
}

func otherSecret(ctx context.Context, st *stage) error {
	if err := st.open(ctx); err != nil {
		return err
	}
	if err := ledger.CheckSecret(ctx, st.reader(), st.secret); err != nil {
		return err
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	other, err := ledger.NewSecret(key)
	if err != nil {
		return err
	}
	err = ledger.CheckSecret(ctx, st.reader(), other)
	st.must(errors.Is(err, ledger.ErrSecretMismatch), "a server with another secret could start")
	if err != nil && !errors.Is(err, ledger.ErrSecretMismatch) {
		return err
	}
	st.tell("it refuses to start: every repeat would look new")
	return nil
}

// otherCredential: what was sent with one credential is neither asked about nor sent again with
// another.
func otherCredential(ctx context.Context, st *stage) error {
	if err := st.open(ctx, sandbox.LoseReply); err != nil {
		return err
	}
	c := st.ordinary()
	if _, err := st.act(ctx, st.first, c); err != nil {
		return err
	}
	next, err := st.start(ctx, "another account", patient)
	if err != nil {
		return err
	}
	op, err := st.operation(ctx, c)
	if err != nil {
		return err
	}
	if !op.Review.Open() { // a person is asked already where no look-up could help
		st.clock.to(op.NextCheckAt)
		if err := next.ledger.Sweep(ctx); err != nil {
			return err
		}
	}
	a, err := st.wait(ctx, next, c)
	st.must(a.Status == unknown && a.Review, "the repeat got %s", a)
	return err
}
