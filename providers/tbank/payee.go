package tbank

import (
	"fmt"
	"regexp"
	"strings"
)

// A Payee is whom the configuration knows: the requisites of a payment.
type Payee struct {
	Account     string `yaml:"account"` // 20 or 22 digits
	BIK         string `yaml:"bik"`
	INN         string `yaml:"inn"`
	KPP         string `yaml:"kpp"`
	BankName    string `yaml:"bank_name"`
	CorrAccount string `yaml:"corr_account"`
}

// requisites are a payee as the bank's API has it.
type requisites struct {
	Name              string `json:"name"`
	INN               string `json:"inn"`
	KPP               string `json:"kpp,omitempty"`
	BIK               string `json:"bik"`
	BankName          string `json:"bankName,omitempty"`
	CorrAccountNumber string `json:"corrAccountNumber,omitempty"`
	AccountNumber     string `json:"accountNumber"`
}

var (
	accountDigits = regexp.MustCompile(`^([0-9]{20}|[0-9]{22})$`)
	corrDigits    = regexp.MustCompile(`^[0-9]{20}$`)
	bikDigits     = regexp.MustCompile(`^[0-9]{9}$`)
	innDigits     = regexp.MustCompile(`^([0-9]{10}|[0-9]{12})$`)
	kppDigits     = regexp.MustCompile(`^[0-9]{9}$`)
)

// readPayees brings the names into the tools' spelling.
func readPayees(configured map[string]Payee) (map[string]requisites, error) {
	payees := make(map[string]requisites, len(configured))
	for name, payee := range configured {
		spelt := strings.ToUpper(strings.NewReplacer(" ", "", "-", "").Replace(name))
		_, twice := payees[spelt]
		switch {
		case spelt == "":
			return nil, fmt.Errorf("payees has an empty name")
		case twice:
			return nil, fmt.Errorf("payees has %q twice: letter case, spaces and hyphens don't count", name)
		}
		r := requisites{
			INN: payee.INN, KPP: payee.KPP, BIK: payee.BIK, BankName: payee.BankName,
			CorrAccountNumber: payee.CorrAccount, AccountNumber: payee.Account,
		}
		if problem := r.problem(); problem != "" {
			return nil, fmt.Errorf("payees: %q: %s", name, problem)
		}
		payees[spelt] = r
	}
	return payees, nil
}

// problem says what is wrong with requisites, without showing them.
func (r requisites) problem() string {
	switch {
	case !accountDigits.MatchString(r.AccountNumber):
		return "the account has 20 or 22 digits"
	case !bikDigits.MatchString(r.BIK):
		return "the BIK has 9 digits"
	case !innDigits.MatchString(r.INN):
		return "the INN has 10 or 12 digits"
	case r.KPP != "" && !kppDigits.MatchString(r.KPP):
		return "the KPP has 9 digits"
	case r.CorrAccountNumber != "" && !corrDigits.MatchString(r.CorrAccountNumber):
		return "the correspondent account has 20 digits"
	}
	return ""
}

// payee reads payee_account: a name from the configuration, or ACCOUNT:BIK:INN[:KPP].
func (p *Provider) payee(argument string) (r requisites, problem string) {
	if r, ok := p.payees[argument]; ok {
		return r, ""
	}
	parts := strings.Split(argument, ":")
	if len(parts) != 3 && len(parts) != 4 {
		return requisites{}, "must be ACCOUNT:BIK:INN or ACCOUNT:BIK:INN:KPP, or the name of a payee of the configuration"
	}
	r = requisites{AccountNumber: parts[0], BIK: parts[1], INN: parts[2]}
	if len(parts) == 4 {
		r.KPP = parts[3]
	}
	return r, r.problem()
}
