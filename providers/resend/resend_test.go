package resend_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/providers/providertest"
	"github.com/onceward/onceward/providers/resend"
)

func configured(t *testing.T, endpoint string) *resend.Provider {
	t.Helper()
	p, err := resend.New(resend.Config{Endpoint: endpoint, From: "Support <support@example.com>", APIKeyEnv: "ONCEWARD_TEST_RESEND_KEY"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var someMail = providers.Email{
	To: []string{"ida.planted@example.org"}, Cc: []string{"cc@example.org"}, Bcc: []string{"ida.planted@example.org"},
	Subject: "planted subject <1>", Body: "planted body & more", HTML: "<p>planted</p>", ReplyTo: "case-7@example.com",
}

// TestProvider has the answers of the pages "Errors" and "Idempotency Keys".
func TestProvider(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_RESEND_KEY", planted)
	other := someMail
	other.Body = "another body"
	said := func(status int, name string, want ledger.Verdict, alarm string) providertest.Answer {
		return providertest.Answer{Name: fmt.Sprint(status, " ", name), Status: status, Body: problem(status, name), Want: want, Alarm: alarm}
	}
	acts := said(500, "application_error", ledger.Unclear, "")
	acts.Name, acts.Acts = "application_error after the effect", true
	providertest.TestProvider(t, providertest.Harness{
		Action:    providers.EmailSend,
		New:       func(t *testing.T, endpoint string) providers.Provider { return configured(t, endpoint) },
		Fake:      func(*testing.T) providertest.Fake { return newMailer().fake() },
		Arguments: someMail, Other: other,
		Answers: []providertest.Answer{
			said(400, "invalid_idempotency_key", ledger.Refused, ""),
			said(400, "validation_error", ledger.Refused, ""),
			said(401, "missing_api_key", ledger.NotSent, "credentials_refused"),
			said(401, "restricted_api_key", ledger.NotSent, "credentials_refused"),
			said(403, "invalid_api_key", ledger.NotSent, "credentials_refused"),
			said(403, "validation_error", ledger.NotSent, "credentials_refused"),
			said(404, "not_found", ledger.Refused, ""),
			said(405, "method_not_allowed", ledger.Refused, ""),
			said(409, "invalid_idempotent_request", ledger.Contradiction, "key_reused"),
			said(409, "concurrent_idempotent_requests", ledger.Unclear, ""),
			said(409, "something_new", ledger.Unclear, ""),
			said(422, "missing_required_field", ledger.Refused, ""),
			said(429, "rate_limit_exceeded", ledger.Unclear, ""),
			said(429, "daily_quota_exceeded", ledger.Unclear, ""),
			said(451, "security_error", ledger.Refused, ""),
			said(500, "application_error", ledger.Unclear, ""),
			acts,
		},
		Secrets: []string{planted}, Private: []string{"ida.planted", "planted subject", "planted body"},
	})
}

func TestRequest(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_RESEND_KEY", planted)
	got, err := configured(t, "").Prepare(providers.Order{Arguments: someMail})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"from":"Support <support@example.com>","to":["ida.planted@example.org"],"cc":["cc@example.org"],"bcc":["ida.planted@example.org"],` +
		`"reply_to":"case-7@example.com","subject":"planted subject <1>","text":"planted body & more","html":"<p>planted</p>"}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func TestPrepareRefuses(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_RESEND_KEY", planted)
	p := configured(t, "")
	for field, change := range map[string]func(*providers.Email){
		"to":       func(m *providers.Email) { m.To = nil },
		"to ":      func(m *providers.Email) { m.To = make([]string, 51) },
		"to  ":     func(m *providers.Email) { m.To = []string{"Ida <ida@example.org>"} },
		"cc":       func(m *providers.Email) { m.Cc = []string{"a@example.org, b@example.org"} },
		"bcc":      func(m *providers.Email) { m.Bcc = []string{"nobody"} },
		"reply_to": func(m *providers.Email) { m.ReplyTo = "Ida <ida@example.org>" },
	} {
		mail := someMail
		change(&mail)
		_, err := p.Prepare(providers.Order{Arguments: mail})
		if problem, ok := errors.AsType[*providers.ArgumentError](err); !ok || problem.Field != strings.TrimSpace(field) {
			t.Errorf("%s: error = %v", field, err)
		}
	}
}

// TestLookup asks by Resend's id; without one nothing is asked.
func TestLookup(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_RESEND_KEY", planted)
	m := newMailer()
	server := httptest.NewServer(m)
	defer server.Close()
	p := configured(t, server.URL)
	request, err := p.Prepare(providers.Order{Arguments: someMail})
	if err != nil {
		t.Fatal(err)
	}
	sent, err := p.Apply(t.Context(), providers.EmailSend, ledger.Attempt{
		ProviderKey: "k1", Payload: ledger.Payload{Request: request}, MaySend: func() error { return nil },
	})
	if err != nil || sent.State != ledger.Settled || string(sent.Result) != `{"recipients":2}` {
		t.Fatalf("receipt = %+v, %v", sent, err)
	}
	for event, want := range map[string]ledger.State{
		"queued": ledger.Accepted, "scheduled": ledger.Accepted, "sent": ledger.Accepted, "delivery_delayed": ledger.Accepted,
		"delivered": ledger.Settled, "opened": ledger.Settled, "clicked": ledger.Settled, "complained": ledger.Settled,
		"bounced": ledger.Rejected, "canceled": ledger.Rejected, "failed": ledger.Rejected, "suppressed": ledger.Rejected,
	} {
		m.turn(event)
		got, err := p.Lookup(t.Context(), providers.EmailSend, ledger.Question{ProviderOperationID: sent.ProviderOperationID})
		if err != nil || got.State != want || got.ProviderStatus != event || got.ProviderOperationID != sent.ProviderOperationID {
			t.Errorf("%s: receipt = %+v, %v", event, got, err)
		}
	}
	m.turn("teleported")
	for id, code := range map[string]string{
		"": "id_unknown", "../keys": "id_unknown", "another": "not_found", sent.ProviderOperationID: "unknown_status",
	} {
		_, err := p.Lookup(t.Context(), providers.EmailSend, ledger.Question{ProviderOperationID: id})
		if said, ok := errors.AsType[*providers.Error](err); !ok || said.Mark != "" || said.Code != code {
			t.Errorf("look-up of %q: %v, want code %s and no mark", id, err, code)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_RESEND_KEY", planted)
	for want, change := range map[string]func(*resend.Config){
		"api_key":            func(c *resend.Config) { c.APIKeyEnv = "" },
		"from":               func(c *resend.Config) { c.From = "" },
		"endpoint: an endpo": func(c *resend.Config) { c.Endpoint = "http://api.example.com" },
		"lease":              func(c *resend.Config) { c.Lease = time.Second },
		"margin":             func(c *resend.Config) { c.Window = time.Minute },
	} {
		c := resend.Config{From: "support@example.com", APIKeyEnv: "ONCEWARD_TEST_RESEND_KEY"}
		change(&c)
		_, err := resend.New(c)
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), planted) {
			t.Errorf("error = %v, want one about %s", err, want)
		}
	}
}

func TestIdentity(t *testing.T) {
	t.Setenv("ONCEWARD_TEST_RESEND_KEY", planted)
	want := []string{"resend", "https://api.resend.com", planted}
	if diff := cmp.Diff(want, configured(t, "").Identity()); diff != "" {
		t.Errorf("identity (-want +got):\n%s", diff)
	}
}
