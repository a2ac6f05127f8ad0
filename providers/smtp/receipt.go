package smtp

import (
	"encoding/json"
	"regexp"
	"strconv"

	"github.com/onceward/onceward/ledger"
)

// A proof is what the operation's history keeps. It holds no address and no text of the
// server's but its name for the message.
type proof struct {
	Provider            string `json:"provider"`
	Answer              string `json:"answer,omitempty"`
	Lookup              string `json:"lookup,omitempty"`
	ProviderOperationID string `json:"provider_operation_id"`
	QueueID             string `json:"queue_id,omitempty"`
	UIDValidity         uint32 `json:"uid_validity,omitempty"`
	UID                 uint32 `json:"uid,omitempty"`
	Copies              int    `json:"copies,omitempty"`
}

// queueID finds a server's name for a message in its reply, in the spellings of Postfix
// ("queued as ID") and Exim ("OK id=ID"). The rest of the text is the server's own.
var queueID = regexp.MustCompile(`(?i)(?:\bqueued as |\bid=)<?([A-Za-z0-9._-]{1,64})(?:[>;,\s]|$)`)

// accepted is the receipt for a positive reply: the server has taken on the mail (RFC 5321,
// 4.2.5 and 6.1). Whether it reaches anybody is told by mail, later, if at all.
func accepted(r request, answer reply) ledger.Receipt {
	p := proof{Answer: strconv.Itoa(answer.code)}
	if found := queueID.FindStringSubmatch(answer.text); found != nil {
		p.QueueID = found[1]
	}
	return receipt(r.MessageID, len(r.To), p)
}

// receipt is settled in the ledger's sense: nothing that can be asked would ever say
// otherwise. recipients is 0 where they aren't known any more.
func receipt(messageID string, recipients int, p proof) ledger.Receipt {
	p.Provider, p.ProviderOperationID = Name, messageID
	r := ledger.Receipt{
		ProviderOperationID: messageID,
		ProviderStatus:      "accepted",
		State:               ledger.Settled,
		Evidence:            render(p),
	}
	if recipients > 0 {
		r.Result = render(struct {
			Recipients int `json:"recipients"`
		}{recipients})
	}
	return r
}

func render(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and numbers can always be rendered
	}
	return b
}
