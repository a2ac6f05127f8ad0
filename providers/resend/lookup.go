package resend

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// states are the events of "Email Events". A mail to several addresses has one last event,
// which may be about one of them.
var states = map[string]ledger.State{
	"queued":           ledger.Accepted,
	"scheduled":        ledger.Accepted,
	"sent":             ledger.Accepted,
	"delivery_delayed": ledger.Accepted,
	"delivered":        ledger.Settled,
	"opened":           ledger.Settled,
	"clicked":          ledger.Settled,
	"complained":       ledger.Settled,
	"bounced":          ledger.Rejected,
	"canceled":         ledger.Rejected,
	"failed":           ledger.Rejected,
	"suppressed":       ledger.Rejected,
}

// Lookup implements [providers.Provider] for mails whose id is known. The traits promise no
// look-up, because after a lost answer it isn't: then this learns nothing.
func (p *Provider) Lookup(ctx context.Context, _ string, q ledger.Question) (ledger.Receipt, error) {
	if !idForm.MatchString(q.ProviderOperationID) {
		return ledger.Receipt{}, &providers.Error{Code: "id_unknown"}
	}
	reply, err := p.client.Do(ctx, providers.HTTPRequest{
		Method: http.MethodGet, Path: "emails/" + q.ProviderOperationID, Header: p.header(),
	})
	if err != nil {
		return ledger.Receipt{}, err
	}
	if reply.Status != http.StatusOK {
		return ledger.Receipt{}, rules.ClassifyLookup(reply)
	}
	var mail struct {
		ID        string `json:"id"`
		LastEvent string `json:"last_event"`
	}
	if !reply.IsJSON() || json.Unmarshal(reply.Body, &mail) != nil || mail.ID != q.ProviderOperationID {
		return ledger.Receipt{}, &providers.Error{Code: codeUnreadable}
	}
	state, ok := states[mail.LastEvent]
	if !ok {
		return ledger.Receipt{}, &providers.Error{Code: "unknown_status"}
	}
	r := receipt(mail.ID, mail.LastEvent, evidence{Lookup: "email", HTTPStatus: reply.Status, LastEvent: mail.LastEvent})
	r.State = state
	return r, nil
}
