package smtp

import (
	"bytes"
	"encoding/json"
	"errors"
)

// A request is what one attempt sends: an envelope and a message. Its encoded form is
// what the ledger seals, and every attempt reads it back, so that all send the same bytes.
type request struct {
	envelopeJSON
	message []byte // whole, lines ended by CRLF, not yet dot-stuffed
}

type envelopeJSON struct {
	MessageID string   `json:"message_id"` // with its angle brackets
	From      string   `json:"from"`
	To        []string `json:"to"`
	UTF8      bool     `json:"smtputf8,omitempty"` // an address needs RFC 6531
}

// encode writes the envelope as a line of JSON, and then the message as it is.
func (r request) encode() ([]byte, error) {
	line, err := json.Marshal(r.envelopeJSON)
	if err != nil {
		return nil, err
	}
	return append(append(line, '\n'), r.message...), nil
}

func decodeRequest(b []byte) (request, error) {
	line, message, found := bytes.Cut(b, []byte{'\n'})
	r := request{message: message}
	if !found {
		return r, errors.New("smtp: the request has no message")
	}
	if err := json.Unmarshal(line, &r.envelopeJSON); err != nil {
		return r, errors.New("smtp: the request has no envelope")
	}
	if r.MessageID == "" || r.From == "" || len(r.To) == 0 || !bytes.HasSuffix(message, []byte("\r\n")) {
		return r, errors.New("smtp: the request isn't whole")
	}
	return r, nil
}

// stuffed is the message as DATA carries it, without the dot that ends it: a line that
// begins with a dot gets another one (RFC 5321, 4.5.2).
func (r request) stuffed() []byte {
	b := bytes.ReplaceAll(r.message, []byte("\r\n."), []byte("\r\n.."))
	if bytes.HasPrefix(b, []byte{'.'}) {
		b = append([]byte{'.'}, b...)
	}
	return b
}
