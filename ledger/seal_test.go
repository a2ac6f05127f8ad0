package ledger_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/onceward/onceward/ledger"
)

var aPayload = ledger.Payload{Arguments: []byte(`{"to":"jane@example.com"}`), Request: []byte("To: jane@example.com")}

func sealer(t *testing.T, key string, previous ...string) *ledger.Sealer {
	t.Helper()
	var older [][]byte
	for _, p := range previous {
		older = append(older, []byte(p))
	}
	s, err := ledger.NewSealer([]byte(key), older...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const oldKey, newKey = "the first seal key", "the second seal key"

func TestAPayloadOpens(t *testing.T) {
	t.Parallel()
	k := ledger.Key{1}
	half := ledger.Payload{Arguments: []byte{}, Request: aPayload.Request}
	for name, c := range map[string]struct {
		seals, opens *ledger.Sealer
		payload      ledger.Payload
	}{
		"under its key":          {sealer(t, oldKey), sealer(t, oldKey), aPayload},
		"after a rotation":       {sealer(t, oldKey), sealer(t, newKey, oldKey), aPayload},
		"after two rotations":    {sealer(t, oldKey), sealer(t, "a third one, longer", newKey, oldKey), aPayload},
		"sealed by the new key":  {sealer(t, newKey, oldKey), sealer(t, newKey), aPayload},
		"when it holds nothing":  {sealer(t, oldKey), sealer(t, oldKey), ledger.Payload{Arguments: []byte{}, Request: []byte{}}},
		"when it holds a lot":    {sealer(t, oldKey), sealer(t, oldKey), ledger.Payload{Arguments: bytes.Repeat([]byte("x"), 1<<20), Request: []byte("y")}},
		"with half of it absent": {sealer(t, oldKey), sealer(t, oldKey), half},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.opens.Open(k, c.seals.Seal(k, c.payload))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Arguments, c.payload.Arguments) || !bytes.Equal(got.Request, c.payload.Request) {
				t.Errorf("it opened to %d and %d bytes, want the %d and %d sealed", len(got.Arguments), len(got.Request), len(c.payload.Arguments), len(c.payload.Request))
			}
		})
	}
}

func TestAPayloadStaysSealed(t *testing.T) {
	t.Parallel()
	s, k := sealer(t, oldKey), ledger.Key{1}
	sealed := s.Seal(k, aPayload)
	if bytes.Contains(sealed, []byte("jane")) {
		t.Error("it holds what it seals in clear")
	}
	if bytes.Equal(sealed, s.Seal(k, aPayload)) {
		t.Error("the same payload is sealed to the same bytes: that tells who gets the same again")
	}
	refuses := func(what string, s *ledger.Sealer, k ledger.Key, b []byte) {
		t.Helper()
		if p, err := s.Open(k, b); !errors.Is(err, ledger.ErrSealed) || len(p.Request) > 0 || len(p.Arguments) > 0 {
			t.Errorf("%s: opened to %d bytes, error %v", what, len(p.Request), err)
		}
	}
	refuses("as another operation's", s, ledger.Key{2}, sealed)
	refuses("under another key", sealer(t, newKey), k, sealed)
	refuses("under an older key that isn't the one", sealer(t, newKey, "yet another seal key"), k, sealed)
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		refuses("with a changed byte", s, k, changed)
		refuses("cut short", s, k, sealed[:i])
	}
	refuses("with a byte too many", s, k, append(bytes.Clone(sealed), 0))
}

func TestASealKeyHasSomeLength(t *testing.T) {
	t.Parallel()
	if _, err := ledger.NewSealer([]byte("fifteen bytes..")); err == nil {
		t.Error("a key of 15 bytes is taken")
	}
	if _, err := ledger.NewSealer([]byte(oldKey), []byte("short")); err == nil {
		t.Error("a previous key of 5 bytes is taken")
	}
}

// A payload that no key opens is a person's matter: nothing else may be sent instead.
func TestAnAttemptWhosePayloadDoesNotOpen(t *testing.T) {
	inWorld(t, func(t *world) {
		t.provider.will(isUnreachable)
		op := t.start().call(strictly("a", theArgs)).Operation
		s := t.start()
		s.Sealer = sealer(t.T, "a seal key that is new here")
		pass(op.NextCheckAt.Sub(op.UpdatedAt))
		a := s.call(strictly("a", theArgs))
		t.want(a, ledger.AnswerFailedRetryable, 0)
		if a.Operation.ErrorCode != ledger.CodeUnsealed || t.alarmed(ledger.CodeUnsealed) != 1 {
			t.Errorf("code %q and %d alarms, want payload_unreadable and 1", a.Operation.ErrorCode, t.alarmed(ledger.CodeUnsealed))
		}
		if requests, _ := t.provider.tally(); requests != 1 {
			t.Errorf("%d requests, want the first one only", requests)
		}
	})
}
