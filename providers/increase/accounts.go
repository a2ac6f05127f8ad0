package increase

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/onceward/onceward/providers"
)

// The tools write accounts in capitals, without spaces and hyphens. Increase's ids are in
// small letters; the sandbox's begin with sandbox_.
var (
	accountID  = regexp.MustCompile(`^(sandbox_)?account_[a-z0-9]+$`)
	externalID = regexp.MustCompile(`^(sandbox_)?external_account_[a-z0-9]+$`)
	bankNumber = regexp.MustCompile(`^([0-9]{9}):([0-9A-Z]{1,17})$`)
)

// readAccounts brings the names into the tools' spelling.
func readAccounts(configured map[string]string) (map[string]string, error) {
	accounts := make(map[string]string, len(configured))
	for name, account := range configured {
		spelt := strings.ToUpper(strings.NewReplacer(" ", "", "-", "").Replace(name))
		_, twice := accounts[spelt]
		switch {
		case spelt == "":
			return nil, fmt.Errorf("accounts has an empty name")
		case twice:
			return nil, fmt.Errorf("accounts has %q twice: letter case, spaces and hyphens don't count", name)
		case !accountID.MatchString(account) && !externalID.MatchString(account) && !isBankNumber(account):
			return nil, fmt.Errorf("accounts: %q names no account: write an id like account_... or external_account_..., or ROUTING:ACCOUNT with a valid routing number", name)
		}
		accounts[spelt] = account
	}
	return accounts, nil
}

// resolve reads an account argument: a configured name, or the account itself.
func (p *Provider) resolve(argument string) string {
	if account, ok := p.accounts[argument]; ok {
		return account
	}
	if small := strings.ToLower(argument); accountID.MatchString(small) || externalID.MatchString(small) {
		return small
	}
	return argument
}

// ownAccount reads an account at Increase.
func (p *Provider) ownAccount(field, argument string) (string, error) {
	account := p.resolve(argument)
	if !accountID.MatchString(account) {
		return "", &providers.ArgumentError{Field: field, Problem: "must be the id of an Increase account (account_...), or a name that the configuration gives one"}
	}
	return account, nil
}

// isBankNumber reports whether s is ROUTING:ACCOUNT with the check digit of an American
// Bankers Association routing number.
func isBankNumber(s string) bool {
	parts := bankNumber.FindStringSubmatch(s)
	if parts == nil {
		return false
	}
	sum := 0
	for i, weight := range [9]int{3, 7, 1, 3, 7, 1, 3, 7, 1} {
		sum += weight * int(parts[1][i]-'0')
	}
	return sum > 0 && sum%10 == 0
}
