// Package providertest is the conformance suite that every provider spoken to by HTTP
// passes, and a server that acts and then hangs up.
//
// A provider's test brings a [Harness]: how to make the provider, the provider's own
// side as a [Fake] written to its documentation, its documented error answers as data,
// and arguments with personal data planted in them:
//
//	func TestProvider(t *testing.T) {
//		providertest.TestProvider(t, providertest.Harness{
//			Action:    providers.RefundCreate,
//			New:       func(t *testing.T, endpoint string) providers.Provider { ... },
//			Fake:      func(t *testing.T) providertest.Fake { ... },
//			Arguments: providers.Refund{...},
//			Other:     providers.Refund{...}, // another amount
//			Answers:   []providertest.Answer{
//				{Name: "card declined", Status: 402, Body: `{"error":{...}}`, Want: ledger.Refused},
//			},
//			Secrets: []string{"sk_test_planted"},
//			Private: []string{"planted note"},
//		})
//	}
//
// What each loss and each answer must lead to in the ledger isn't written down by the
// provider's test: the suite derives it from the verdict and the provider's traits, and
// counts the effects at the fake. Real peers are a second, independent check.
package providertest
