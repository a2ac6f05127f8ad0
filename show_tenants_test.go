package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tokensFile writes one; each line is a tenant, perhaps with *, and its token.
func tokensFile(t *testing.T, entries ...[2]string) string {
	t.Helper()
	var text strings.Builder
	for _, entry := range entries {
		sum := sha256.Sum256([]byte(entry[1]))
		fmt.Fprintln(&text, entry[0], hex.EncodeToString(sum[:]))
	}
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func bearer(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

// as makes a call with a token.
func as(ctx context.Context, t *testing.T, s *localServer, token, tool string, call toolCall) (reply, error) {
	t.Helper()
	c := &client{wire: s.dial(t, bearer(token)), era: sessionEra, header: bearer(token)}
	if err := c.begin(ctx); err != nil {
		return reply{}, err
	}
	return c.call(ctx, tool, call)
}

func outcomeAs(ctx context.Context, t *testing.T, s *localServer, token, tool string, call toolCall) outcome {
	t.Helper()
	said, err := as(ctx, t, s, token, tool, call)
	if err != nil {
		t.Fatal(err)
	}
	o, err := said.outcome()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Two tenants name their actions alike: neither collides with the other's, nor sees it.
func TestTenantsAreApart(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"http", "sse"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			ctx := waiting(t)
			tokens := tokensFile(t, [2]string{"north", "token of north"}, [2]string{"south", "token of south"})
			s := startLocal(t, kind, dataDir(t), "--tokens", tokens)
			call := with(refundIntent, refundArgs)

			north := outcomeAs(ctx, t, s, "token of north", "refund", call)
			south := outcomeAs(ctx, t, s, "token of south", "refund", with(refundIntent, strings.ReplaceAll(refundArgs, "100.00", "7.00")))
			for _, said := range []outcome{north, south} {
				if said.Status != "succeeded" || said.Replayed {
					t.Errorf("%+v, want a first success", said)
				}
			}
			if north.OperationID == south.OperationID || north.ProviderOperationID == south.ProviderOperationID {
				t.Errorf("%+v and %+v are one operation", north, south)
			}
			if again := outcomeAs(ctx, t, s, "token of north", "refund", call); !again.Replayed || again.OperationID != north.OperationID {
				t.Errorf("north again: %+v, want a replay of %+v", again, north)
			}
			get := toolCall{Args: json.RawMessage(fmt.Sprintf(`{"operation_id":%q}`, north.OperationID))}
			if own := outcomeAs(ctx, t, s, "token of north", "operation_get", get); own.Status != "succeeded" {
				t.Errorf("north reads its own: %+v", own)
			}
			if other := outcomeAs(ctx, t, s, "token of south", "operation_get", get); other.Code != "not_found" || other.ProviderOperationID != "" {
				t.Errorf("south reads north's: %+v, want not_found", other)
			}
			list, err := as(ctx, t, s, "token of south", "operation_list", with(refundIntent, `{}`))
			if err != nil {
				t.Fatal(err)
			}
			var said struct{ Operations []outcome }
			if err := json.Unmarshal(list.Result.StructuredContent, &said); err != nil {
				t.Fatal(err)
			}
			if len(said.Operations) != 1 || said.Operations[0].OperationID != south.OperationID {
				t.Errorf("south lists %+v, want its own only", said.Operations)
			}
			s.stop()
			wantEffects(t, s.dir, map[string]int{"refund": 2})
		})
	}
}

func TestWithoutATokenNothingIsDone(t *testing.T) {
	t.Parallel()
	ctx := waiting(t)
	s := startLocal(t, "http", dataDir(t), "--tokens", tokensFile(t, [2]string{"north", "token of north"}))
	for _, header := range []http.Header{nil, bearer(""), bearer("token of south"), {"Authorization": {"Basic token of north"}}} {
		c := &client{wire: s.dial(t, header), era: statelessEra, header: header}
		if said, err := c.call(ctx, "refund", with(refundIntent, refundArgs)); err == nil {
			t.Errorf("with %v it was answered: %+v", header, said)
		} else if !strings.Contains(err.Error(), "status 401") {
			t.Errorf("with %v: %v, want status 401", header, err)
		}
	}
	s.stop()
	wantEffects(t, s.dir, map[string]int{})
}

// A ledger that was used without tenants is opened by a server with tenants only if one
// of them inherits it: to anybody else every repeat would look new.
func TestTenantsAndALedgerWithoutThem(t *testing.T) {
	t.Parallel()
	ctx, dir := waiting(t), dataDir(t)
	before := startLocal(t, "stdio", dir)
	first := talk(ctx, t, before, "refund", with(refundIntent, refundArgs))
	before.stop()

	strangers := tokensFile(t, [2]string{"north", "token of north"}, [2]string{"south", "token of south"})
	code, out, errOut := command(ctx, "serve", "--transport", "http", "--addr", "127.0.0.1:0", "--tokens", strangers, "--data-dir", dir)
	if code != exitUsage || !strings.Contains(errOut, "operations without a tenant") || out != "" {
		t.Errorf("ended with %d and said %q, want %d and why", code, errOut, exitUsage)
	}

	heirs := tokensFile(t, [2]string{"*north", "token of north"}, [2]string{"south", "token of south"})
	s := startLocal(t, "http", dir, "--tokens", heirs)
	if said := outcomeAs(ctx, t, s, "token of north", "refund", with(refundIntent, refundArgs)); !said.Replayed || said.OperationID != first.OperationID {
		t.Errorf("the heir's repeat: %+v, want a replay of %+v", said, first)
	}
	if said := outcomeAs(ctx, t, s, "token of south", "refund", with(refundIntent, refundArgs)); said.Replayed || said.OperationID == first.OperationID {
		t.Errorf("another tenant's: %+v, want an operation of its own", said)
	}
	s.stop()
	wantEffects(t, dir, map[string]int{"refund": 2})
}
