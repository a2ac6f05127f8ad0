package providertest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// A toy is a small provider that does everything right, but for one bug.
type toy struct {
	client *providers.HTTPClient
	bug    string
}

type toyRefund struct {
	ID        string `json:"id,omitempty"`
	Reference string `json:"reference"`
	Payment   string `json:"payment"`
	Minor     int64  `json:"minor"`
	Currency  string `json:"currency"`
	Status    string `json:"status,omitempty"`
	Salt      int    `json:"salt,omitempty"`
}

func (p *toy) Traits(action string) (providers.Traits, bool) {
	t := providers.Traits{
		Deadline: 5 * time.Second, Lease: 10 * time.Second, Settle: time.Second,
		Key: providers.KeyInHeader, Window: time.Hour, Margin: time.Minute, Reuse: providers.ReuseRefused,
		Lookup: providers.LookupByParent, ProvesAbsence: true,
	}
	switch p.bug {
	case "margin shorter than an attempt":
		t.Margin = time.Second
	case "window without a key":
		t.Key = providers.NoKey
	case "window for ever":
		t.Window, t.Margin = 0, 0
	}
	return t, action == providers.RefundCreate
}

func (p *toy) Prepare(o providers.Order) ([]byte, error) {
	r, ok := o.Arguments.(providers.Refund)
	switch {
	case !ok:
		return nil, errors.New("the toy makes refunds only")
	case r.PaymentID == "":
		return nil, &providers.ArgumentError{Field: "payment_id", Problem: "is missing"}
	case r.Amount.Minor <= 0:
		return nil, &providers.ArgumentError{Field: "amount", Problem: "must be more than zero"}
	case r.Amount.Currency != "USD" && p.bug != "any currency":
		return nil, &providers.ArgumentError{Field: "currency", Problem: "must be USD"}
	}
	sent := toyRefund{Reference: o.OperationID, Payment: r.PaymentID, Minor: r.Amount.Minor, Currency: r.Amount.Currency}
	if p.bug == "impure Prepare" {
		sent.Salt = rand.Int()
	}
	return json.Marshal(sent)
}

func (p *toy) Apply(ctx context.Context, _ string, a ledger.Attempt) (ledger.Receipt, error) {
	request := providers.HTTPRequest{
		Method: http.MethodPost, Path: "/refunds", Body: a.Payload.Request, MaySend: a.MaySend,
		Header: http.Header{"X-Api-Key": {toySecret}, "X-Toy-Key": {a.ProviderKey}},
	}
	switch p.bug {
	case "never asks MaySend":
		request.MaySend = nil
	case "no key sent":
		request.Header.Del("X-Toy-Key")
	}
	reply, err := p.client.Do(ctx, request)
	if err != nil && p.bug == "tries again" {
		reply, err = p.client.Do(ctx, request)
	}
	switch {
	case err != nil && p.bug == "errors are refusals":
		return ledger.Receipt{}, &providers.Error{Mark: providers.Refused, Code: "connection_lost"}
	case err != nil && p.bug == "errors are not sent":
		return ledger.Receipt{}, &providers.Error{Mark: providers.NotSent, Code: "connection_lost"}
	case err != nil && p.bug == "errors show secrets":
		return ledger.Receipt{}, fmt.Errorf("%s: %w", toySecret, err)
	case err != nil:
		return ledger.Receipt{}, err
	case reply.Status != http.StatusOK && p.bug == "every 4xx is a refusal" && reply.Status/100 == 4:
		return ledger.Receipt{}, &providers.Error{Mark: providers.Refused, Code: "refused"}
	case reply.Status != http.StatusOK && p.bug == "a 500 is a refusal" && reply.Status == 500:
		return ledger.Receipt{}, &providers.Error{Mark: providers.Refused, Code: "refused"}
	case reply.Status != http.StatusOK:
		return ledger.Receipt{}, toyRules.Classify(reply)
	}
	var made, sent toyRefund
	if json.Unmarshal(a.Payload.Request, &sent) != nil {
		return ledger.Receipt{}, &providers.Error{Mark: providers.NotSent, Code: "invalid"}
	}
	err = json.Unmarshal(reply.Body, &made)
	if p.bug == "any 200 is a success" {
		made = sent
		made.ID, made.Status, err = "toy_1", "done", nil
	}
	if err != nil || made.ID == "" {
		return ledger.Receipt{}, &providers.Error{Code: "answer_not_understood"}
	}
	return p.receipt(made, sent)
}

func (p *toy) Lookup(ctx context.Context, _ string, q ledger.Question) (ledger.Receipt, error) {
	var sent toyRefund
	reference := q.Payload.Request
	if len(reference) == 0 && p.bug != "needs what was sealed" {
		reference = q.Reference
	}
	if json.Unmarshal(reference, &sent) != nil {
		return ledger.Receipt{}, &providers.Error{Code: "no_reference"}
	}
	var found []toyRefund
	for page := 0; ; page++ {
		reply, err := p.client.Do(ctx, providers.HTTPRequest{
			Method: http.MethodGet, Path: "/refunds", Query: url.Values{"payment": {sent.Payment}, "page": {fmt.Sprint(page)}},
			Header: http.Header{"X-Api-Key": {toySecret}},
		})
		switch {
		case err != nil:
			return ledger.Receipt{}, err
		case reply.Status == http.StatusNotFound && p.bug == "404 is absence":
			return ledger.Receipt{}, providers.ErrAbsent
		case reply.Status != http.StatusOK && p.bug == "a refused question is a refusal":
			return ledger.Receipt{}, toyRules.Classify(reply)
		case reply.Status != http.StatusOK:
			return ledger.Receipt{}, toyRules.ClassifyLookup(reply)
		}
		var list struct {
			Refunds *[]toyRefund `json:"refunds"`
			More    bool         `json:"more"`
		}
		if err := json.Unmarshal(reply.Body, &list); err != nil || list.Refunds == nil {
			if p.bug == "an empty object is absence" && err == nil {
				return ledger.Receipt{}, providers.ErrAbsent
			}
			return ledger.Receipt{}, &providers.Error{Code: "answer_not_understood"}
		}
		for _, r := range *list.Refunds {
			if r.Reference == sent.Reference || p.bug == "takes any refund" {
				found = append(found, r)
			}
		}
		if !list.More || p.bug == "one page" {
			break
		}
	}
	switch {
	case len(found) == 0:
		return ledger.Receipt{}, providers.ErrAbsent
	case len(found) > 1 && p.bug != "takes the first of two" && p.bug != "takes any refund":
		return ledger.Receipt{}, &providers.Error{Mark: providers.Contradiction, Code: "two_objects"}
	}
	return p.receipt(found[0], sent)
}

func (p *toy) receipt(made, sent toyRefund) (ledger.Receipt, error) {
	if made.Minor != sent.Minor && p.bug != "takes any amount" {
		return ledger.Receipt{}, &providers.Error{Mark: providers.Contradiction, Code: "other_object"}
	}
	state := ledger.Settled
	if made.Status == "rejected" && p.bug != "takes the rejected for done" {
		state = ledger.Rejected
	}
	evidence, _ := json.Marshal(map[string]string{"provider": "toy", "provider_operation_id": made.ID})
	if p.bug == "evidence shows the answer" {
		evidence, _ = json.Marshal(map[string]string{"provider": "toy", "provider_operation_id": made.ID, "note": toyNote})
	}
	money := providers.Money{Minor: sent.Minor, Currency: sent.Currency}
	result, _ := json.Marshal(map[string]string{"payment_id": sent.Payment, "amount": money.Decimal(), "currency": sent.Currency})
	reference, _ := json.Marshal(sent)
	return ledger.Receipt{ProviderOperationID: made.ID, ProviderStatus: made.Status, State: state, Reference: reference, Result: result, Evidence: evidence}, nil
}

var toyRules = providers.HTTPRules{
	LimiterFirst: true,
	Code: func(r providers.HTTPReply) string {
		code, ok := strings.CutPrefix(string(r.Body), "toy error: ")
		if !ok {
			return ""
		}
		return code
	},
	Exceptions: func(r providers.HTTPReply, code string) (*providers.Error, bool) {
		return &providers.Error{Mark: providers.KeyReused, Code: code}, code == "key_reused"
	},
}
