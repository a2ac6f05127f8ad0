package webhook

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// Apply implements [providers.Provider].
func (p *Provider) Apply(ctx context.Context, name string, at ledger.Attempt) (ledger.Receipt, error) {
	a := p.actions[name]
	if a == nil {
		return ledger.Receipt{}, &providers.Error{Mark: providers.NotSent, Code: "no_such_action", Alarm: "no_such_action"}
	}
	sent, ok := decode(at.Payload.Request)
	if !ok {
		return ledger.Receipt{}, &providers.Error{Mark: providers.NotSent, Code: "request_unreadable", Alarm: "request_unreadable"}
	}
	key := a.key.written(at.ProviderKey)
	header := p.header()
	header.Set("Content-Type", "application/json")
	if a.key.Header != "" {
		header.Set(a.key.Header, key)
	}
	reply, err := p.client.Do(ctx, providers.HTTPRequest{
		Method: a.method, Path: strings.ReplaceAll(a.path, placeholder, key), Header: header,
		Body: a.key.withKey(at.Payload.Request, at.ProviderKey), MaySend: at.MaySend,
	})
	if err != nil {
		return ledger.Receipt{}, err
	}
	if reply.Status < 200 || reply.Status > 299 {
		return ledger.Receipt{}, a.classify(reply)
	}
	object, ok := decode(reply.Body)
	if !ok || !isJSON(reply) {
		return ledger.Receipt{}, &providers.Error{Code: codeUnreadable}
	}
	if err := a.answer.checkKey(object, key); err != nil {
		return ledger.Receipt{}, err
	}
	return a.receipt(object, sent, a.result(sent), evidence{Answer: "created", HTTPStatus: reply.Status, Date: date(reply)})
}

// An evidence is what the ledger's journal keeps of an answer.
type evidence struct {
	Provider            string `json:"provider"`
	Answer              string `json:"answer,omitempty"`
	Lookup              string `json:"lookup,omitempty"`
	ProviderOperationID string `json:"provider_operation_id"`
	HTTPStatus          int    `json:"http_status"`
	Date                string `json:"date,omitempty"` // the gateway's clock
}

func date(reply providers.HTTPReply) string {
	if t := reply.Date(); !t.IsZero() {
		return t.Format(time.RFC3339)
	}
	return ""
}

// A reference is what the ledger keeps of an object: once it is final, what was sent is
// gone.
type reference struct {
	ID     string          `json:"id"`
	Result json.RawMessage `json:"result,omitempty"`
}

// receipt shows an object. sent is nil where nobody knows any more what was sent.
func (a *action) receipt(object, sent any, result json.RawMessage, e evidence) (ledger.Receipt, error) {
	id := identifier(a.answer.id.text(object))
	if id == "" {
		return ledger.Receipt{}, &providers.Error{Code: codeIncomplete}
	}
	if sent != nil {
		if err := a.answer.compare(object, sent); err != nil {
			return ledger.Receipt{}, err
		}
	}
	status, state := "accepted", ledger.Accepted
	if a.states != nil {
		var known bool
		status = a.answer.status.text(object)
		if state, known = a.states[status]; !known {
			return ledger.Receipt{}, &providers.Error{Code: codeUnknownStatus, Alarm: codeUnknownStatus}
		}
	}
	e.Provider, e.ProviderOperationID = Name, id
	return ledger.Receipt{
		ProviderOperationID: id,
		ProviderStatus:      status,
		State:               state,
		Reference:           marshal(reference{id, result}),
		Result:              result,
		Evidence:            marshal(e),
	}, nil
}

func marshal(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings, numbers and what was rendered before can always be rendered
	}
	return b
}

// result is what the tool's caller gets to read, of what was sent.
func (a *action) result(sent any) json.RawMessage {
	value := func(argument string) string {
		at, _ := a.body.place(argument)
		return at.text(sent)
	}
	if a.name == providers.EmailSend {
		return marshal(map[string]int{"recipients": a.recipients(sent)})
	}
	shown := map[string]string{}
	for _, name := range []string{argBusinessReference, argPaymentID} {
		if v := value(name); v != "" {
			shown[name] = v
		}
	}
	code := value(argCurrency)
	if code == "" && len(a.currencies) == 1 {
		code = a.currencies[0]
	}
	amount := value(argAmount)
	if minor, err := json.Number(value(argAmountMinor)).Int64(); amount == "" && err == nil {
		amount = providers.Money{Minor: minor, Currency: code}.Decimal()
	}
	shown[argAmount], shown[argCurrency] = amount, code
	return marshal(shown)
}

// recipients counts each address once, as a mail server does.
func (a *action) recipients(sent any) int {
	seen := map[string]bool{}
	for _, argument := range []string{argTo, argCc, argBcc} {
		at, ok := a.body.place(argument)
		if !ok {
			continue
		}
		list, _ := at.get(sent)
		addresses, _ := list.([]any)
		for _, address := range addresses {
			seen[text(address)] = true
		}
	}
	return len(seen)
}
