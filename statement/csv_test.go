package statement_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/statement"
)

const head = "payout_id,reference,amount,currency,created\n"

func readCSV(text string, c statement.CSVConfig) (statement.Statement, error) {
	return statement.Read(strings.NewReader(text), statement.CSV, &c)
}

// One line that can't be read spoils the file: it may be the one that matters.
func TestCSVThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text   string
		line   int
		column string
	}{
		"only space":             {"\n\n", 0, ""},
		"a column that's gone":   {"payout_id,reference,amount,currency\n", 1, "column created"},
		"a column that's twice":  {"payout_id,reference,amount,currency,created,amount\n", 1, "column amount"},
		"another delimiter":      {"payout_id;reference;amount;currency;created\n", 1, "column payout_id"},
		"a short row":            {head + "p,secret,1.00,EUR\n", 2, ""},
		"a long row":             {head + "\np,secret,1.00,EUR,2026-11-30,x\n", 3, ""},
		"a quote inside":         {head + "p,sec\"ret,1.00,EUR,2026-11-30\n", 2, ""},
		"a quote left open":      {head + "p,\"secret,1.00,EUR,2026-11-30\n", 2, ""},
		"no amount":              {head + "p,secret,,EUR,2026-11-30\n", 2, "column amount"},
		"words for an amount":    {head + "p,r,secret,EUR,2026-11-30\n", 2, "column amount"},
		"an exponent":            {head + "p,r,1e3,EUR,2026-11-30\n", 2, "column amount"},
		"a decimal comma":        {head + "p,secret,\"1,00\",EUR,2026-11-30\n", 2, "column amount"},
		"too many digits":        {head + "p,secret,1.000,EUR,2026-11-30\n", 2, "column amount"},
		"more than 64 bits":      {head + "p,secret,99999999999999999.00,EUR,2026-11-30\n", 2, "column amount"},
		"a minus sign":           {head + "p,secret,-1.00,EUR,2026-11-30\n", 2, "column amount"},
		"a lone point":           {head + "p,secret,.,EUR,2026-11-30\n", 2, "column amount"},
		"another currency":       {head + "p,secret,1.00,XYZ,2026-11-30\n", 2, "column currency"},
		"a zero of no currency":  {head + "p,secret,0.00,secret,2026-11-30\n", 2, "column currency"},
		"no day":                 {head + "p,secret,1.00,EUR,\n", 2, "column created"},
		"a day that isn't":       {head + "p,secret,1.00,EUR,2026-02-30\n", 2, "column created"},
		"a day written freely":   {head + "p,r,1.00,EUR,secret\n", 2, "column created"},
		"after a field of lines": {head + "p,\"a\nb\",1.00,EUR,2026-11-30\np,secret,1.00,EUR,x\n", 4, "column created"},
		"a footer":               {head + "p,r,1.00,EUR,2026-11-30\nSum,secret,1.00,EUR,\n", 3, "column created"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := readCSV(tc.text, register)
			wantError(t, err, tc.line, tc.column, "secret", "99999")
		})
	}
	t.Run("words and lines of a bank's own", func(t *testing.T) {
		t.Parallel()
		const head = "a\nb\nc\nBuchung;Kundenreferenz;Bankreferenz;Betrag;S/H;Status\n"
		for row, column := range map[string]string{
			"30.11.2026 10:00;r;b;1,00;secret;gebucht\n":   "column S/H",
			"30.11.2026 10:00;r;b;1,00;S;secret\n":         "column Status",
			"30.11.2026 10:00;r;b;-1,00;S;gebucht\n":       "column Betrag",
			"30.11.2026 10:00;r;b;1.00;S;gebucht\n":        "column Betrag",
			"30.11.2026 10:00;r;b;12.50,00;S;gebucht\n":    "column Betrag",
			"30.11.2026 10:00;r;b;1250.000,00;S;gebucht\n": "column Betrag",
			"30.11.2026 10:00;r;b;1,0,0;S;gebucht\n":       "column Betrag",
			"30.11.2026 10:00;r;b;.250,00;S;gebucht\n":     "column Betrag",
			";r;b;1,00;S;gebucht\n":                        "column Buchung",
			"secret;r;b;1,00;S;vorgemerkt\n":               "column Buchung",
		} {
			_, err := readCSV(head+row, bank)
			wantError(t, err, 5, column, "secret")
		}
		pointed := bank
		pointed.Thousands = ""
		_, err := readCSV(head+"30.11.2026 10:00;r;b;12.50;S;gebucht\n", pointed)
		wantError(t, err, 5, "column Betrag")
		_, err = readCSV("a\nb", bank)
		wantError(t, err, 0, "")
		_, err = readCSV(head+"secret;r\n", bank)
		wantError(t, err, 5, "", "secret")
	})
}

func TestWhichWayMoneyWent(t *testing.T) {
	t.Parallel()
	type way struct {
		Amount providers.Money
		Debit  bool
	}
	for negative, rows := range map[string]map[string]way{
		"debit":  {"-1.00": {eur(100), true}, "1.00": {eur(100), false}, "+1.00": {eur(100), false}, "\u22121.00": {eur(100), true}, "0.00": {eur(0), false}},
		"credit": {"-1.00": {eur(100), false}, "1.00": {eur(100), true}, "0": {eur(0), true}},
		"":       {"1.00": {eur(100), true}, "0": {eur(0), true}, "1": {eur(100), true}},
	} {
		for written, want := range rows {
			c := register
			c.Negative = negative
			s, err := readCSV(head+"p,r,"+written+",EUR,2026-11-30\n", c)
			if err != nil || len(s.Entries) != 1 {
				t.Errorf("negative %q, %s: %d entries, %v", negative, written, len(s.Entries), err)
				continue
			}
			if diff := cmp.Diff(want, way{s.Entries[0].Amount, s.Entries[0].Debit}); diff != "" {
				t.Errorf("negative %q, %s (-want +got):\n%s", negative, written, diff)
			}
		}
	}
	for _, written := range []string{"--1.00", "+-1.00", "1.00-", "- 1.00"} {
		c := register
		c.Negative = "debit"
		_, err := readCSV(head+"p,r,"+written+",EUR,2026-11-30\n", c)
		wantError(t, err, 2, "column amount")
	}
}

func TestCSVConfigThatIsWrong(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*statement.CSVConfig)
		names  string // the setting that the error must name
	}{
		"no reference":                {func(c *statement.CSVConfig) { c.Columns.Reference = nil }, "columns.reference"},
		"no amount":                   {func(c *statement.CSVConfig) { c.Columns.Amount = "" }, "columns.amount"},
		"no day":                      {func(c *statement.CSVConfig) { c.Columns.Booked = "" }, "columns.booked"},
		"no currency":                 {func(c *statement.CSVConfig) { c.Columns.Currency = "" }, "columns.currency"},
		"two currencies":              {func(c *statement.CSVConfig) { c.Currency = "EUR" }, "columns.currency"},
		"an unknown currency":         {func(c *statement.CSVConfig) { c.Columns.Currency, c.Currency = "", "XYZ" }, "currency"},
		"a delimiter of two":          {func(c *statement.CSVConfig) { c.Delimiter = ";;" }, "delimiter"},
		"a quote for a delimiter":     {func(c *statement.CSVConfig) { c.Delimiter = `"` }, "delimiter"},
		"a broken delimiter":          {func(c *statement.CSVConfig) { c.Delimiter = "\xff" }, "delimiter"},
		"a day without a year":        {func(c *statement.CSVConfig) { c.DateFormat = "DD.MM." }, "date_format"},
		"a day of Go's":               {func(c *statement.CSVConfig) { c.DateFormat = "2006-01-02" }, "date_format"},
		"a day with a name":           {func(c *statement.CSVConfig) { c.DateFormat = "DD MMM YYYY" }, "date_format"},
		"two days":                    {func(c *statement.CSVConfig) { c.DateFormat = "DD.MM.YYYY DD" }, "date_format"},
		"lines before the first":      {func(c *statement.CSVConfig) { c.SkipLines = -1 }, "skip_lines"},
		"thousands like the fraction": {func(c *statement.CSVConfig) { c.Thousands = "." }, "thousands"},
		"thousands of two":            {func(c *statement.CSVConfig) { c.Thousands = ", " }, "thousands"},
		"a digit between thousands":   {func(c *statement.CSVConfig) { c.Thousands = "0" }, "thousands"},
		"minus means something else":  {func(c *statement.CSVConfig) { c.Negative = "out" }, "negative"},
		"minus and a column": {func(c *statement.CSVConfig) {
			c.Negative, c.Columns.Direction, c.Directions = "debit", "d", map[string]string{"D": "debit"}
		}, "negative"},
		"a direction without words": {func(c *statement.CSVConfig) { c.Columns.Direction = "d" }, "directions"},
		"words without a direction": {func(c *statement.CSVConfig) { c.Directions = map[string]string{"D": "debit"} }, "directions"},
		"a status without words":    {func(c *statement.CSVConfig) { c.Columns.Status = "s" }, "statuses"},
		"a status that means much":  {func(c *statement.CSVConfig) { c.Columns.Status, c.Statuses = "s", map[string]string{"x": "done"} }, "statuses"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := register
			tc.change(&c)
			err := c.Check()
			if err == nil || !strings.HasPrefix(err.Error(), "statement: "+tc.names+" ") {
				t.Errorf("Check = %v, want an error about %s", err, tc.names)
			}
			if _, readErr := readCSV(head, c); fmt.Sprint(readErr) != fmt.Sprint(err) {
				t.Errorf("Read = %v, want what Check says", readErr)
			}
		})
	}
	for _, right := range []statement.CSVConfig{register, bank} {
		if err := right.Check(); err != nil {
			t.Errorf("Check = %v", err)
		}
	}
}

// Of a line only what is needed is taken along.
func TestNamesAreNotRead(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"register.csv", "bank.csv", "camt.053.001.02.xml", "camt.053.001.08.xml"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		columns := &register
		if name == "bank.csv" {
			columns = &bank
		}
		s, err := statement.Read(strings.NewReader(string(text)), statement.Auto, columns)
		if err != nil {
			t.Fatal(err)
		}
		for _, personal := range []string{"Jane", "Example", "Miete", "Rent", "DE001111"} {
			if strings.Contains(fmt.Sprintf("%+v", s), personal) {
				t.Errorf("%s: %q is in the statement", name, personal)
			}
		}
	}
}
