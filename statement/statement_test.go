package statement_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/statement"
)

func november(day int) time.Time { return time.Date(2026, time.November, day, 0, 0, 0, 0, time.UTC) }

func eur(minor int64) providers.Money { return providers.Money{Minor: minor, Currency: "EUR"} }

var (
	register = statement.CSVConfig{Columns: statement.Columns{
		Reference: []string{"reference", "payout_id"}, ID: "payout_id", Amount: "amount", Currency: "currency", Booked: "created",
	}}
	bank = statement.CSVConfig{
		Columns: statement.Columns{
			Reference: []string{"Kundenreferenz"}, ID: "Bankreferenz", Amount: "Betrag", Booked: "Buchung", Direction: "S/H", Status: "Status",
		},
		Delimiter: ";", SkipLines: 3, DateFormat: "DD.MM.YYYY hh:mm", DecimalComma: true, Thousands: ".", Currency: "EUR",
		Directions: map[string]string{"S": "debit", "H": "credit"},
		Statuses:   map[string]string{"gebucht": "booked", "vorgemerkt": "pending", "storniert": "reversed", "abgelehnt": "ignored"},
		Account:    "DE00 0000 0000 0000 0000 00",
	}
)

// The samples, and what a person reads in them.
func TestSamples(t *testing.T) {
	t.Parallel()
	type entries = []statement.Entry
	for name, tc := range map[string]struct {
		columns *statement.CSVConfig
		want    statement.Statement
	}{
		"register.csv": {&register, statement.Statement{
			From: november(28),
			// sha256sum testdata/register.csv
			Digest: "72600ddec4a7cad7b3b29ae4c36cb7801129e3c295bb994b1012dfa239094496",
			Entries: entries{
				{References: []string{"0123456789abcdef0123456789abcdef", "po_1001"}, ID: "po_1001", Amount: eur(125000), Debit: true, Booked: november(27), Status: statement.Booked},
				{References: []string{"INV-2026-17, second part", "po_1002"}, ID: "po_1002", Amount: eur(8050), Debit: true, Booked: november(28), Status: statement.Booked},
				{References: []string{"po_1003"}, ID: "po_1003", Amount: providers.Money{Minor: 3000, Currency: "JPY"}, Debit: true, Booked: november(30), Status: statement.Booked},
			},
		}},
		"bank.csv": {&bank, statement.Statement{
			From: november(28), Accounts: []string{"DE00000000000000000000"},
			Entries: entries{
				{References: []string{"fedcba98-7654-3210-fedc-ba9876543210"}, ID: "B-1", Amount: eur(125000), Debit: true, Booked: november(27), Status: statement.Booked},
				{References: []string{"NONREF"}, ID: "B-2", Amount: eur(1230), Booked: november(30), Status: statement.Booked},
				{References: []string{"INV-9"}, Amount: eur(5), Debit: true, Status: statement.Pending},
				{References: []string{"INV-8"}, ID: "B-3", Amount: eur(700), Booked: november(30), Status: statement.Reversed},
			},
		}},
		"camt.053.001.02.xml": {nil, statement.Statement{
			From: november(27), Through: november(30), Accounts: []string{"DE00000000000000000000"},
			Entries: entries{
				{References: []string{"0123456789abcdef0123456789abcdef", "I-1"}, ID: "B-1", Amount: eur(125000), Debit: true, Booked: november(27), Status: statement.Booked},
				{References: []string{"E-1"}, ID: "B-2", Amount: eur(1000), Debit: true, Booked: november(30), Status: statement.Booked},
				{References: []string{"B-2-2"}, ID: "B-2-2", Amount: providers.Money{Minor: 2200, Currency: "USD"}, Debit: true, Booked: november(30), Status: statement.Booked},
				{ID: "3", Amount: eur(700), Debit: true, Status: statement.Pending},
			},
		}},
		"camt.053.001.08.xml": {nil, statement.Statement{
			From: november(27), Through: november(28), Accounts: []string{"12345678", "DE00000000000000000000"},
			Entries: entries{
				{References: []string{"E-2", "T-2", "00000000-0000-4000-8000-000000000000"}, ID: "T-2", Amount: providers.Money{Minor: 3000, Currency: "JPY"}, Booked: november(28), Status: statement.Reversed},
				{References: []string{"E-3"}, ID: "B-5", Amount: eur(500), Booked: november(28), Status: statement.Reversed},
				{References: []string{"E-4"}, Debit: true, Status: statement.Pending},
				{References: []string{"E-5"}, Debit: true, Status: statement.Pending},
			},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, err := os.Open("testdata/" + name)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			got, err := statement.Read(file, statement.Auto, tc.columns)
			if err != nil {
				t.Fatal(err)
			}
			if tc.want.Digest == "" {
				got.Digest = ""
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What some programs put before a text says nothing about it.
func TestAByteOrderMarkIsNoText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{head + "p,r,1.00,EUR,2026-11-30\n", camt("<Stmt>" + booked + "</Ntry></Stmt>")} {
		s, err := statement.Read(strings.NewReader("\ufeff"+text), statement.Auto, &register)
		if err != nil || len(s.Entries) != 1 {
			t.Errorf("%d entries, error %v; want one", len(s.Entries), err)
		}
	}
}

// wantError demands an *Error at a place, and that no text of the file is in it.
func wantError(t *testing.T, err error, line int, column string, secrets ...string) {
	t.Helper()
	bad, ok := errors.AsType[*statement.Error](err)
	if !ok {
		t.Fatalf("the error is %v, want one about the file", err)
	}
	if bad.Line != line || bad.Column != column {
		t.Errorf("the error is about line %d, %q (%v); want %d, %q", bad.Line, bad.Column, err, line, column)
	}
	for _, secret := range secrets {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error shows %q: %v", secret, err)
		}
	}
}

func TestWhatIsNoStatement(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text   string
		format statement.Format
		line   int
	}{
		"nothing":                 {"", statement.Auto, 0},
		"Latin-1":                 {"reference,amount\nM\xfcller,1\n", statement.Auto, 2},
		"UTF-16":                  {"\xff\xfer\x00", statement.Auto, 1},
		"CSV, called a camt.053":  {"reference,amount\n", statement.CAMT053, 2},
		"XML of another kind":     {"<html>\n<body>Jane</body></html>", statement.Auto, 1},
		"a byte over 64 MiB long": {strings.Repeat("a", statement.MaxBytes+1), statement.CSV, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := statement.Read(strings.NewReader(tc.text), tc.format, &register)
			column := ""
			if name == "XML of another kind" {
				column = "Document"
			}
			wantError(t, err, tc.line, column, "Jane")
		})
	}
	if _, err := statement.Read(strings.NewReader("a,b\n"), statement.Auto, nil); err == nil {
		t.Error("a CSV file is read without its columns")
	}
	if _, err := statement.Read(strings.NewReader("a,b\n"), "mt940", &register); err == nil {
		t.Error("an unknown format is read")
	}
	broken := errors.New("the disk is gone")
	if _, err := statement.Read(io.MultiReader(strings.NewReader("a"), failing{broken}), statement.CSV, &register); !errors.Is(err, broken) {
		t.Errorf("Read = %v, want that the disk is gone", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
