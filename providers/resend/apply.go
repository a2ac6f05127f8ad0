package resend

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

const codeUnreadable = "answer_unreadable"

// idForm is what an id can be; Resend's are UUIDs. It goes into paths and journals.
var idForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)

// Apply implements [providers.Provider].
func (p *Provider) Apply(ctx context.Context, _ string, a ledger.Attempt) (ledger.Receipt, error) {
	var sent request
	if err := json.Unmarshal(a.Payload.Request, &sent); err != nil {
		return ledger.Receipt{}, &providers.Error{Mark: providers.NotSent, Code: "request_unreadable", Alarm: "request_unreadable", Err: err}
	}
	header := p.header()
	header.Set("Content-Type", "application/json")
	header.Set("Idempotency-Key", a.ProviderKey)
	reply, err := p.client.Do(ctx, providers.HTTPRequest{
		Method: http.MethodPost, Path: "emails", Header: header, Body: a.Payload.Request, MaySend: a.MaySend,
	})
	if err != nil {
		return ledger.Receipt{}, err
	}
	if reply.Status < 200 || reply.Status > 299 {
		return ledger.Receipt{}, rules.Classify(reply)
	}
	var mail struct {
		ID string `json:"id"`
	}
	if !reply.IsJSON() || json.Unmarshal(reply.Body, &mail) != nil || !idForm.MatchString(mail.ID) {
		return ledger.Receipt{}, &providers.Error{Code: codeUnreadable}
	}
	r := receipt(mail.ID, "accepted", evidence{Answer: "email", HTTPStatus: reply.Status})
	// Settled in the ledger's sense: after a lost answer nobody can be asked, so the traits
	// have no look-up, and nothing would ever bring a later state.
	r.State = ledger.Settled
	r.Result = render(struct {
		Recipients int `json:"recipients"`
	}{sent.recipients()})
	return r, nil
}

func (p *Provider) header() http.Header {
	return http.Header{
		"Accept":        {"application/json"},
		"Authorization": {"Bearer " + p.apiKey.Reveal()},
	}
}

// rules are what the pages "Errors" and "Idempotency Keys" say besides the shared table.
var rules = providers.HTTPRules{
	Code: func(reply providers.HTTPReply) string {
		var problem struct {
			Name string `json:"name"`
		}
		if !reply.IsJSON() || json.Unmarshal(reply.Body, &problem) != nil {
			return ""
		}
		return problem.Name
	},
	Exceptions: func(reply providers.HTTPReply, code string) (*providers.Error, bool) {
		switch {
		case reply.Status == http.StatusConflict && code == "invalid_idempotent_request":
			return &providers.Error{Mark: providers.KeyReused, Code: code}, true
		case reply.Status == http.StatusConflict && code == "concurrent_idempotent_requests":
			return &providers.Error{Mark: providers.InFlight, Code: code}, true
		case reply.Status == http.StatusUnavailableForLegalReasons && code == "security_error":
			return &providers.Error{Mark: providers.Refused, Code: code}, true
		}
		return nil, false
	},
}

// evidence is what the operation's history keeps. It holds no address.
type evidence struct {
	Provider            string `json:"provider"`
	Answer              string `json:"answer,omitempty"`
	Lookup              string `json:"lookup,omitempty"`
	ProviderOperationID string `json:"provider_operation_id"`
	HTTPStatus          int    `json:"http_status"`
	LastEvent           string `json:"last_event,omitempty"`
}

func receipt(id, status string, e evidence) ledger.Receipt {
	e.Provider, e.ProviderOperationID = Name, id
	return ledger.Receipt{ProviderOperationID: id, ProviderStatus: status, Evidence: render(e)}
}

func render(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and numbers can always be rendered
	}
	return b
}
