package statement_test

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/onceward/onceward/statement"
)

// Whatever a file holds: an error about the file, or a statement that keeps its word.
func check(t *testing.T, text []byte, format statement.Format, columns *statement.CSVConfig) {
	s, err := statement.Read(bytes.NewReader(text), format, columns)
	if err != nil {
		if _, ok := errors.AsType[*statement.Error](err); !ok {
			t.Fatalf("the error is %v, want one about the file", err)
		}
		return
	}
	whole := func(day time.Time) bool { return day.Equal(day.Truncate(24 * time.Hour)) }
	if !whole(s.From) || !whole(s.Through) || s.Partial != "" && !s.From.IsZero() || !s.Through.IsZero() && s.Through.Before(s.From) {
		t.Errorf("it covers %v to %v, partial %q", s.From, s.Through, s.Partial)
	}
	for _, e := range s.Entries {
		if e.Amount.Minor < 0 || e.Amount.Currency == "" && e.Amount.Minor != 0 || !whole(e.Booked) {
			t.Errorf("an entry is %+v", e)
		}
		switch e.Status {
		case statement.Booked, statement.Pending, statement.Reversed:
		default:
			t.Errorf("a status is %q", e.Status)
		}
		for _, r := range e.References {
			if r == "" {
				t.Error("a reference is empty")
			}
		}
	}
}

func addFiles(f *testing.F, names ...string) {
	for _, name := range names {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
}

func FuzzCSV(f *testing.F) {
	addFiles(f, "register.csv", "bank.csv")
	f.Fuzz(func(t *testing.T, text []byte) {
		check(t, text, statement.CSV, &register)
		check(t, text, statement.CSV, &bank)
	})
}

func FuzzCAMT(f *testing.F) {
	addFiles(f, "camt.053.001.02.xml", "camt.053.001.08.xml")
	f.Fuzz(func(t *testing.T, text []byte) { check(t, text, statement.CAMT053, nil) })
}
