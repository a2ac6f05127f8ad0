package providertest

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/onceward/onceward/ledger"
)

// wantNoLeak reads a text for what was planted, plainly or in the spellings of a request.
func (h Harness) wantNoLeak(t *testing.T, where, text string) {
	t.Helper()
	for kind, planted := range map[string][]string{"a secret": h.Secrets, "personal data": h.Private} {
		for i, p := range planted {
			for _, spelling := range []string{p, url.QueryEscape(p), url.PathEscape(p), base64.StdEncoding.EncodeToString([]byte(p))} {
				if strings.Contains(text, spelling) {
					t.Errorf("%s shows %s (number %d)", where, kind, i)
				}
			}
		}
	}
}

// wantNoLeakIn reads all that an attempt or a look-up brought back.
func (h Harness) wantNoLeakIn(t *testing.T, r ledger.Receipt, err error) {
	t.Helper()
	h.wantNoLeak(t, "the receipt", fmt.Sprintf("%s %s %s %s %s", r.ProviderOperationID, r.ProviderStatus, r.Reference, r.Result, r.Evidence))
	if err != nil {
		h.wantNoLeak(t, "the error", fmt.Sprintf("%v %+v", err, err))
	}
}
