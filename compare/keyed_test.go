package compare_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/onceward/onceward/providers"
)

// A keyed server is one as people write it with care: a durable table of keys, a claim before
// the effect, the result after it, and the key passed on as the Idempotency-Key. It lacks
// nothing but a good key.
type keyed struct {
	db   *sql.DB
	bank string
	now  func() time.Time
	key  func(call) (string, error)
}

// claimFor is how long a claim without a result is left to whoever made it.
const claimFor = 45 * time.Second

// rawArguments names an action by what the model wrote. The members' order and white space
// don't count.
func rawArguments(c call) (string, error) {
	var arguments any
	if err := json.Unmarshal([]byte(c.arguments), &arguments); err != nil {
		return "", err
	}
	canonical, err := json.Marshal(arguments) // sorts the members
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}

// position names an action by where in the workflow it is done.
func position(c call) (string, error) {
	return c.workflow + ":" + c.step + ":" + providers.RefundCreate, nil
}

// openKeyed opens the table in a folder.
func openKeyed(t testing.TB, folder string, w world, key func(call) (string, error)) *keyed {
	t.Helper()
	source := url.URL{Scheme: "file", Path: filepath.Join(folder, "keys.db"),
		RawQuery: "_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"}
	db, err := sql.Open("sqlite", source.String())
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), `CREATE TABLE IF NOT EXISTS actions (
		key TEXT PRIMARY KEY, claimed INTEGER NOT NULL, free INTEGER NOT NULL DEFAULT 0, result TEXT)`)
	if err != nil {
		t.Fatal(err)
	}
	return &keyed{db, w.bank.server.URL, w.clock.Now, key}
}

func (k *keyed) close(testing.TB) { k.db.Close() }

// refund answers from the table, or acts and writes the result down.
func (k *keyed) refund(ctx context.Context, c call) (told, error) {
	key, err := k.key(c)
	if err != nil {
		return "", err
	}
	result, claimed, err := k.claim(ctx, key)
	switch {
	case err != nil:
		return "", err
	case result != "":
		return done, nil
	case !claimed:
		return "in_progress", nil
	}
	reply, err := k.send(ctx, key, c)
	if err != nil {
		// The same key may try again at once: the bank knows it if it acted.
		_, freed := k.db.ExecContext(context.WithoutCancel(ctx), `UPDATE actions SET free = 1 WHERE key = ?`, key)
		return "failed", freed
	}
	_, err = k.db.ExecContext(context.WithoutCancel(ctx), `UPDATE actions SET result = ? WHERE key = ?`, reply, key)
	return done, err
}

// claim returns the result if there is one, or else whether the action is the caller's now.
func (k *keyed) claim(ctx context.Context, key string) (result string, claimed bool, err error) {
	now := k.now().UnixMicro()
	inserted, err := changed(k.db.ExecContext(ctx, `INSERT INTO actions (key, claimed) VALUES (?, ?) ON CONFLICT DO NOTHING`, key, now))
	if inserted || err != nil {
		return "", inserted, err
	}
	// A claim that was given up, or whose process is dead, is taken over by one.
	took, err := changed(k.db.ExecContext(ctx, `UPDATE actions SET claimed = ?, free = 0 WHERE key = ? AND result IS NULL AND (free = 1 OR claimed <= ?)`,
		now, key, now-claimFor.Microseconds()))
	if took || err != nil {
		return "", took, err
	}
	var kept sql.NullString
	err = k.db.QueryRowContext(ctx, `SELECT result FROM actions WHERE key = ?`, key).Scan(&kept)
	return kept.String, false, err
}

func changed(r sql.Result, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n == 1, err
}

// send makes one request. A connection of its own keeps net/http from sending it again.
func (k *keyed) send(ctx context.Context, key string, c call) (string, error) {
	body, err := rendered(c.arguments)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, k.bank+"/v1/refunds", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", key)
	transport := &http.Transport{DisableKeepAlives: true}
	reply, err := transport.RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", reply.StatusCode)
	}
	return string(text), err
}

// rendered is what goes to the bank for a call's arguments.
func rendered(arguments string) ([]byte, error) {
	var a struct {
		PaymentID string `json:"payment_id"`
		Amount    string `json:"amount"`
		Currency  string `json:"currency"`
		Note      string `json:"note,omitempty"`
	}
	if err := json.Unmarshal([]byte(arguments), &a); err != nil {
		return nil, err
	}
	money, err := providers.ParseMoney(a.Amount, a.Currency)
	if err != nil {
		return nil, err
	}
	if a.PaymentID == "" {
		return nil, errors.New("no payment")
	}
	return json.Marshal(map[string]any{"payment_id": a.PaymentID, "amount_minor": money.Minor, "currency": money.Currency, "note": a.Note})
}
