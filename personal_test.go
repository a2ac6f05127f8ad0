package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/providers/sandbox"
)

// planted are values that may stand nowhere but in the outside world. Each begins with a
// word that nothing else has, so that a part of it is found, too.
var planted = map[string]string{
	"to":            "plantedto@example.com",
	"cc":            "plantedcc@example.com",
	"bcc":           "plantedbcc@example.com",
	"reply_to":      "plantedreply@example.com",
	"other_to":      "plantedother@example.com",
	"subject":       "Plantedsubject for Anna",
	"body":          "Plantedbody: dear Anna, about your illness",
	"html":          "<p>Plantedhtml dear Anna</p>",
	"debit_account": "DE02120300000000202051",
	"payee_account": "GB94BARC10201530093459",
	"payee_name":    "Plantedpayee Jones",
	"purpose":       "Plantedpurpose for your illness",
	"note":          "Plantednote: she called, angry",
	"amount":        "Plantedamount",
	"text":          "Plantedtext of a provider",
	"panic":         "Plantedpanic of a provider",
	"token":         "plantedtoken-9d1f6c3a",
	"junk":          "plantedjunk@example.com",
	"secret":        "plantedsecret of enough bytes",
	"seal_key":      "plantedsealkey of enough bytes",
}

// forms are the ways in which a value may be written down.
func forms(value string) [][]byte {
	all := [][]byte{[]byte(value), []byte(strings.ToLower(value)), []byte(strings.ToUpper(value)), []byte(hex.EncodeToString([]byte(value)))}
	if quoted, err := json.Marshal(value); err == nil {
		all = append(all, bytes.Trim(quoted, `"`))
	}
	if first, _, ok := strings.Cut(value, " "); ok {
		all = append(all, []byte(first), []byte(strings.ToLower(first)))
	}
	for shift := range 3 { // where it may begin within base64's groups of three
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := encoding.EncodeToString(append(make([]byte, shift), value...))
			all = append(all, []byte(text[4:len(text)-4])) // but for what the neighbours change
		}
	}
	return all
}

// leaks names the planted values that text holds.
func leaks(text []byte) []string {
	var found []string
	for name, value := range planted {
		for _, form := range forms(value) {
			if at := bytes.Index(text, form); at >= 0 {
				found = append(found, fmt.Sprintf("%s: %.80q", name, text[max(0, at-20):]))
				break
			}
		}
	}
	return found
}

func wantNoLeaks(t *testing.T, where string, text []byte) {
	t.Helper()
	for _, leak := range leaks(text) {
		t.Errorf("%s holds %s", where, leak)
	}
}

// grepDir looks into every file of a data directory. The sandbox's journal is the outside
// world: there they have to be, which shows that they would be found.
func grepDir(t *testing.T, dir, when string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	outside, size := map[string]bool{}, 0
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(file.Name(), "sandbox.db") {
			wantNoLeaks(t, file.Name()+", "+when, content)
			size += len(content)
			continue
		}
		for _, leak := range leaks(content) {
			name, _, _ := strings.Cut(leak, ":")
			outside[name] = true
		}
	}
	for _, name := range []string{"to", "subject", "body", "payee_account", "note"} {
		if !outside[name] {
			t.Errorf("the sandbox's journal doesn't hold %s, %s: nothing would be found", name, when)
		}
	}
	if size < 4096 {
		t.Errorf("only %d bytes to look into", size)
	}
}

func mailArgs(to string) string {
	return marshalled(map[string]any{
		"to": []string{planted[to]}, "cc": []string{strings.ToUpper(planted["cc"])}, "bcc": []string{planted["bcc"]},
		"subject": planted["subject"], "body": planted["body"], "html": planted["html"], "reply_to": planted["reply_to"],
	})
}

func paymentArgs(amount string) string {
	return marshalled(map[string]any{
		"debit_account": "DE02 1203 0000 0000 2020 51", "payee_account": planted["payee_account"], "payee_name": planted["payee_name"],
		"purpose": planted["purpose"], "amount": amount, "currency": "EUR", "business_reference": "INV-7",
	})
}

func plantedRefund(amount string) string {
	return marshalled(map[string]any{"payment_id": "pay_1", "amount": amount, "currency": "USD", "note": planted["note"]})
}

func marshalled(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// plantedCalls are calls that bring the planted values, in every way that ends well or ill.
func plantedCalls() []struct{ tool, id, args string } {
	type calls = []struct{ tool, id, args string }
	made := calls{}
	for i := range 3 { // by then each fault has been met, and what follows it
		id := fmt.Sprint(i)
		made = append(made, calls{
			{"email_send", "m-" + id, mailArgs("to")},
			{"email_send", "m-" + id, mailArgs("other_to")}, // a conflict
			{"email_send", "m-" + id, strings.ReplaceAll(mailArgs("to"), "Anna", "Bob")},
			{"payment_order_create", "p-" + id, paymentArgs("10.00")},
			{"payment_order_create", "p-" + id, paymentArgs("11.00")}, // a conflict
			{"refund", "r-" + id, plantedRefund("5.00")},
			{"refund", "r-" + id, plantedRefund("5.00")},
		}...)
	}
	return append(made, calls{
		{"refund", "bad-1", plantedRefund(planted["amount"])},
		{"refund", "bad-2", marshalled(map[string]any{"payment_id": "pay_1", "amount": "1.00", "currency": "USD", planted["junk"]: planted["note"]})},
		{"refund", "bad-3", marshalled(map[string]any{"payment_id": "pay_1", "amount": "1.00", "currency": "USD", "reason": planted["note"]})},
		{"email_send", "bad-4", strings.ReplaceAll(mailArgs("to"), planted["to"], planted["to"]+`\nBcc: `+planted["junk"])},
		{"email_send", "bad-5", strings.ReplaceAll(mailArgs("to"), "Plantedsubject", `Plantedsubject\ud800`)},
		{"email_send", "bad-6", strings.ReplaceAll(mailArgs("to"), `"body":`, `"subject":`)},
		{"payment_order_create", "bad-7", paymentArgs("-1")},
		{"operation_get", "bad-8", marshalled(map[string]any{"operation_id": planted["junk"]})},
		{"operation_list", "bad-9", marshalled(map[string]any{"status": planted["junk"]})},
		{"no_such_tool", "bad-10", mailArgs("to")},
		{"refund", planted["junk"] + "\u0000", plantedRefund("5.00")},
	}...)
}

// A real process meets every fault. While it still runs its files are looked into, with the
// write-ahead log as it is then; and once more when it has ended.
func TestNothingPersonalAtRest(t *testing.T) {
	t.Parallel()
	for _, mode := range []struct {
		name  string
		flags []string
	}{
		{"strict", []string{
			"--sandbox-faults", "email.send:lose-reply,email.send:refuse,payment_order.create:server-error,payment_order.create:unavailable,refund:cached-error,refund:refuse",
			"--no-sandbox-lookup", "--no-sandbox-idempotent",
		}},
		{"kind", []string{"--sandbox-faults", "email.send:lose-request,payment_order.create:lose-reply,refund:reject-later"}},
	} {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			ctx, dir := waiting(t), filepath.Join(t.TempDir(), "data")
			env := []string{"ONCEWARD_SECRET=" + planted["secret"], "ONCEWARD_SEAL_KEY=" + planted["seal_key"]}
			child := startChild(t, dir, env, append([]string{"--log-level", "debug"}, mode.flags...)...)
			for _, call := range plantedCalls() {
				answer, err := child.send(call.tool, with(marshalled(map[string]string{"business_operation_id": call.id}), call.args))
				if err != nil {
					t.Fatal(err)
				}
				select {
				case <-answer:
				case <-ctx.Done():
					t.Fatalf("%s %s: no answer", call.tool, call.id)
				}
			}
			for _, junk := range []string{planted["junk"], `{"jsonrpc":"2.0","id":"` + planted["junk"]} {
				if _, err := child.in.Write([]byte(junk + "\n")); err != nil {
					t.Fatal(err)
				}
			}
			if log, err := os.Stat(filepath.Join(dir, "ledger.db-wal")); err != nil || log.Size() == 0 {
				t.Errorf("no write-ahead log to look into: %v", err)
			}
			grepDir(t, dir, "before it ends")
			if code := child.end(t); code != exitDone {
				t.Errorf("ended with %d", code)
			}
			grepDir(t, dir, "after it ended")
			wantNoLeaks(t, "the log", []byte(child.log.String()))
			for _, line := range child.printed() {
				wantNoLeaks(t, "an answer", line)
			}
			if !strings.Contains(child.log.String(), "level=DEBUG") || len(child.printed()) < len(plantedCalls()) {
				t.Errorf("%d answers, and the log:\n%s", len(child.printed()), child.log)
			}
		})
	}
}

// In the workflow identity what waits for a person is kept sealed, and shown without it.
func TestNothingPersonalInWhatWaits(t *testing.T) {
	t.Parallel()
	ctx, dir := waiting(t), dataDir(t)
	s := startLocal(t, "stdio", dir, "--identity", "workflow", "--workflow-id", "case-1842", "--log-level", "debug")
	var said []byte
	for i, want := range []string{"succeeded", "awaiting_approval", "awaiting_approval"} {
		args := strings.TrimSuffix(mailArgs("to"), "}") + fmt.Sprintf(`,"about":"order-%d"}`, min(i, 1))
		o := talk(ctx, t, s, "email_send", toolCall{Args: json.RawMessage(args)})
		if o.Status != want {
			t.Errorf("mail %d: %+v, want %s", i, o, want)
		}
		said = append(said, marshalled(o)...)
	}
	talk(ctx, t, s, "refund", toolCall{Args: json.RawMessage(plantedRefund("5.00"))})
	talk(ctx, t, s, "payment_order_create", toolCall{Args: json.RawMessage(paymentArgs("5.00"))})
	for _, args := range [][]string{{"list"}, {"list", "--json"}, {"show", listed(ctx, t, dir)[1]["operation_id"].(string)}} {
		code, out, errOut := command(ctx, append(append([]string{"operations"}, args...), "--data-dir", dir, "--log-level", "debug")...)
		if code != exitDone {
			t.Errorf("%v ended with %d", args, code)
		}
		said = append(said, out+errOut...)
	}
	s.stop()
	wantNoLeaks(t, "what is said", said)
	wantNoLeaks(t, "the log", []byte(s.log.String()))
	grepDir(t, dir, "while it waits")
}

// A careless provider quotes what it was sent: in errors, in codes' places, in panics.
type carelessProvider struct{ providers.Provider }

func (p carelessProvider) Apply(ctx context.Context, action string, a ledger.Attempt) (ledger.Receipt, error) {
	quoted := fmt.Errorf("%s: 550 %s is unknown, as is %s", planted["text"], planted["to"], planted["payee_account"])
	switch {
	case a.Number > 1:
		return p.Provider.Apply(ctx, action, a)
	case action == providers.EmailSend:
		return ledger.Receipt{}, quoted
	case action == providers.PaymentOrderCreate:
		return ledger.Receipt{}, &providers.Error{Mark: providers.NotSent, Code: "unavailable", Err: quoted}
	}
	panic(planted["panic"] + " " + planted["note"])
}

func (p carelessProvider) Lookup(ctx context.Context, action string, q ledger.Question) (ledger.Receipt, error) {
	if action == providers.RefundCreate {
		panic(planted["panic"] + string(q.Payload.Request))
	}
	return ledger.Receipt{}, fmt.Errorf("%s, not found: %s", planted["text"], q.Payload.Request)
}

func TestNothingPersonalFromCarelessProviders(t *testing.T) {
	t.Parallel()
	ctx, dir := waiting(t), dataDir(t)
	careless := func(o *office) {
		p := carelessProvider{o.sandbox}
		for action := range o.providers {
			o.providers[action] = p
			o.ledger.Actors[action], _ = providers.Actor(sandbox.Name, o.sandbox.Scope(), action, p)
		}
	}
	tokens := tokensFile(t, [2]string{"north", planted["token"]})
	s := startChanged(t, "http", dir, careless, "--tokens", tokens, "--log-level", "debug", "--reconcile-every", "50ms", "--sandbox-deadline", "200ms", "--sandbox-lease", "400ms")
	var said []byte
	for range 3 {
		for _, call := range plantedCalls() {
			answer, err := as(ctx, t, s, planted["token"], call.tool, with(marshalled(map[string]string{"business_operation_id": call.id}), call.args))
			if err != nil {
				said = append(said, err.Error()...)
				continue
			}
			said = append(said, marshalled(answer)...)
		}
	}
	if _, err := as(ctx, t, s, planted["token"]+" ", "refund", with(refundIntent, refundArgs)); err != nil {
		said = append(said, err.Error()...)
	}
	s.stop()
	wantNoLeaks(t, "what is said", said)
	wantNoLeaks(t, "the log", []byte(s.log.String()))
	if !strings.Contains(s.log.String(), "panicked") || !bytes.Contains(said, []byte(`"unknown"`)) {
		t.Errorf("nothing panicked, or nothing is unknown:\n%s", s.log)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(file.Name(), "sandbox.db") {
			wantNoLeaks(t, file.Name(), content)
		}
	}
}
