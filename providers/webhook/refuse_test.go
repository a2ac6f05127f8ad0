package webhook_test

import (
	"strings"
	"testing"

	"github.com/onceward/onceward/providers/webhook"
)

// good is a configuration that the table below breaks, one line at a time.
const good = `
endpoint: https://payments.example.com
headers:
  Authorization: {env: PAYMENTS_TOKEN, prefix: "Bearer "}
  X-Tenant: {value: acme}
actions:
  payment_order.create:
    create: {path: /v1/orders}
    key: {header: Idempotency-Key}
    window: 24h
    body: {amount: amount, currency: currency, ref: business_reference}
    answer: {id: id, status: status, key: key, error: code, same: {amount: amount}}
    statuses: {accepted: [pending], rejected: [failed]}
    errors:
      - {status: 409, code: busy, means: in_flight}
    lookup: {path: "/v1/orders/{key}", not_found: absent, not_found_code: none}
`

func TestNewRefuses(t *testing.T) {
	t.Setenv("PAYMENTS_TOKEN", planted)
	t.Setenv("ONCEWARD_TEST_EMPTY", "")
	t.Setenv("ONCEWARD_TEST_BROKEN", planted+"\nX-Injected: 1")
	if _, err := webhook.New(read(t, good)); err != nil {
		t.Fatalf("the configuration that is broken below isn't good itself: %v", err)
	}
	for name, tt := range map[string]struct{ old, fresh, says string }{
		"no endpoint":              {"endpoint: https://payments.example.com", "", "endpoint is missing"},
		"http off loopback":        {"https://payments", "http://payments", "endpoint"},
		"an endpoint with a query": {"example.com", "example.com?a=1", "endpoint"},

		"a secret in the file":      {"{env: PAYMENTS_TOKEN, prefix: \"Bearer \"}", "{value: abc}", "a secret doesn't stand in the configuration"},
		"an empty variable":         {"PAYMENTS_TOKEN", "ONCEWARD_TEST_EMPTY", "ONCEWARD_TEST_EMPTY"},
		"a line break in a secret":  {"PAYMENTS_TOKEN", "ONCEWARD_TEST_BROKEN", "Authorization can't be sent"},
		"no such secret file":       {"env: PAYMENTS_TOKEN", "file: no.secret", "Authorization: file"},
		"a value twice":             {"{value: acme}", "{value: acme, env: PAYMENTS_TOKEN}", "keep one of value, env and file"},
		"two places of a secret":    {"{env: PAYMENTS_TOKEN,", "{env: PAYMENTS_TOKEN, file: a,", "keep one of value, env and file"},
		"a header without a value":  {"{value: acme}", "{}", "X-Tenant has no value"},
		"a header of ours":          {"X-Tenant", "Content-Type", "Content-Type is set by Onceward"},
		"no header":                 {"X-Tenant", "\"X Tenant\"", "is no header"},
		"a header twice":            {"X-Tenant", "authorization", "twice"},
		"the key in a header of us": {"header: Idempotency-Key", "header: X-Tenant", "headers sets already"},
		"the key as the content":    {"header: Idempotency-Key", "header: Content-Length", "key.header"},

		"no actions":           {good[strings.Index(good, "actions:"):], "actions: {}", "actions is missing"},
		"an unknown action":    {"payment_order.create", "payment.create", "is no action type"},
		"no path":              {"{path: /v1/orders}", "{}", "create.path is missing"},
		"a relative path":      {"path: /v1/orders}", "path: v1/orders}", "begins with /"},
		"a query in the path":  {"path: /v1/orders}", "path: \"/v1/orders?a=1\"}", "no query"},
		"another placeholder":  {"path: /v1/orders}", "path: \"/v1/{id}/orders\"}", "{key} is all"},
		"dots in the path":     {"path: /v1/orders}", "path: /v1/../orders}", "segments . or .."},
		"an unknown method":    {"{path: /v1/orders}", "{path: /v1/orders, method: PATCH}", "POST, or PUT"},
		"PUT to no place":      {"{path: /v1/orders}", "{path: /v1/orders, method: PUT}", "create.path has no {key}"},
		"no word on the key":   {"key: {header: Idempotency-Key}", "key: {}", "key is missing"},
		"two ways of the key":  {"{header: Idempotency-Key}", "{header: Idempotency-Key, member: k}", "more than one way"},
		"none, and more":       {"{header: Idempotency-Key}", "{none: true, reuse: acts}", "none: true alone"},
		"reference and reuse":  {"{header: Idempotency-Key}", "{header: Idempotency-Key, only_reference: true, reuse: acts}", "only_reference"},
		"an unknown format":    {"{header: Idempotency-Key}", "{header: Idempotency-Key, format: ulid}", "hex or uuid"},
		"an unknown reuse":     {"{header: Idempotency-Key}", "{header: Idempotency-Key, reuse: ignored}", "refused, replayed or acts"},
		"no window":            {"    window: 24h\n", "", "window is missing"},
		"a window for ever":    {"{header: Idempotency-Key}", "{header: Idempotency-Key, for_ever: true}", "for_ever"},
		"a window without key": {"{header: Idempotency-Key}", "{header: Idempotency-Key, only_reference: true}", "window and margin belong to a key"},
		"a short window":       {"window: 24h", "window: 45s", "margin"},
		"a margin too short":   {"window: 24h", "window: 24h\n    margin: 10s", "at least as long as lease"},
		"a margin too long":    {"window: 24h", "window: 24h\n    margin: 24h", "margin"},
		"a short lease":        {"window: 24h", "window: 24h\n    lease: 1s", "lease"},

		"an unknown argument":     {"ref: business_reference", "ref: reference", `no argument "reference"`},
		"another tool's argument": {"ref: business_reference", "ref: payment_id", `no argument "payment_id"`},
		"no amount":               {"{amount: amount, currency: currency,", "{currency: currency,", "body sends no amount"},
		"no currency":             {"currency: currency, ", "", "body sends no currency"},
		"a member in another":     {"ref: business_reference", "amount.ref: business_reference", "taken by another member"},
		"a constant's place":      {"    window: 24h", "    window: 24h\n    constants: {ref: x}", "taken by another member"},
		"the key's place":         {"{header: Idempotency-Key}", "{member: ref}", "taken by another member"},
		"the whole as a member":   {"ref: business_reference", ".: business_reference", "is no member"},
		"an empty path":           {"ref: business_reference", "a..b: business_reference", "empty name"},
		"a broken pointer":        {"ref: business_reference", "/a~2: business_reference", "no JSON Pointer"},
		"an unknown currency":     {"    window: 24h", "    window: 24h\n    currencies: [EUR, ZZZ]", `"ZZZ"`},
		"an empty currency":       {"    window: 24h", "    window: 24h\n    currencies: [\"\"]", "ISO 4217"},

		"no id":                     {"{id: id, ", "{", "answer.id is missing"},
		"an answer's path":          {"{id: id, ", "{id: a..b, ", "answer.id"},
		"what isn't sent, compared": {"same: {amount: amount}", "same: {to: payee_account}", "body doesn't send"},
		"statuses without a place":  {"status: status, ", "", "answer.status isn't"},
		"no status of success":      {"accepted: [pending], ", "", "no answer is a success"},
		"a status twice":            {"rejected: [failed]", "rejected: [pending]", "pending twice"},
		"a status of two words":     {"[pending]", "[\"in progress\"]", "statuses.accepted"},

		"an unknown meaning":        {"means: in_flight", "means: retry", "refused, not_sent, in_flight, key_reused or nothing"},
		"a 5xx that means no":       {"{status: 409, code: busy, means: in_flight}", "{status: 503, means: refused}", "a 5xx proves nothing"},
		"a 2xx among the errors":    {"status: 409", "status: 202", "400 to 499"},
		"a timeout that means no":   {"{status: 409, code: busy, means: in_flight}", "{status: 408, means: not_sent}", "doesn't say that nothing happened"},
		"a code without a place":    {"error: code, ", "", "answer.error isn't"},
		"a code of two words":       {"code: busy", "code: is busy", "number 1: code"},
		"a rule that is never used": {"      - {status: 409, code: busy", "      - {status: 409, means: nothing}\n      - {status: 409, code: busy", "number 2 is never reached"},

		"no word on the look-up":   {"lookup: {path: \"/v1/orders/{key}\", not_found: absent, not_found_code: none}", "lookup: {}", "lookup is missing"},
		"none, and a path":         {"lookup: {", "lookup: {none: true, ", "keep one"},
		"asks for nothing":         {"\"/v1/orders/{key}\"", "/v1/orders", "put {key}"},
		"a look-up that acts":      {"lookup: {", "lookup: {method: DELETE, ", "GET or POST"},
		"a body for GET":           {"lookup: {", "lookup: {body: {k: v}, ", "belongs to method: POST"},
		"an unknown 404":           {"not_found: absent", "not_found: gone", "absent or nothing"},
		"a code for no 404":        {"not_found: absent, ", "", "goes with not_found: absent"},
		"asks without a key":       {"key: {header: Idempotency-Key}\n    window: 24h", "key: {none: true}", "key is none"},
		"a list without a key":     {"key: key, error: code, same: {amount: amount}}", "error: code}\n    ", "answer.key isn't given"},
		"a cursor without a place": {"lookup: {", "lookup: {items: data, cursor: page, ", "go together"},
		"pages of one object":      {"lookup: {", "lookup: {next: n, cursor: page, ", "go together"},
		"absence by any 404":       {"not_found_code: none", "proves_absence: true", "needs not_found"},
		"absence without settle":   {"not_found_code: none", "not_found_code: none, proves_absence: true", "settle is missing"},
		"a negative lag":           {"not_found_code: none", "not_found_code: none, lag: -1s", "lag is negative"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(good, tt.old, tt.fresh, 1)
			if name == "a list without a key" {
				text = strings.Replace(text, "lookup: {", "lookup: {items: data, ", 1)
			}
			if text == good {
				t.Fatal("the configuration isn't broken")
			}
			_, err := webhook.New(read(t, text))
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("error %v, want one that says %q", err, tt.says)
			}
			if strings.Contains(err.Error(), planted) {
				t.Errorf("the error shows the secret: %v", err)
			}
		})
	}
}
