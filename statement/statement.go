// Package statement reads what a bank or a provider lists by itself: exports and
// registers as CSV, and account statements as ISO 20022 camt.053. They tell what became
// of a payment where nobody can be asked.
//
// Of a line only references, amount, day and status are read: names, accounts and texts
// of the other side are never looked at, and no error holds a value from the file.
package statement

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/onceward/onceward/providers"
)

// MaxBytes is how large a file may be.
const MaxBytes = 64 << 20

// A Statement is what a file lists.
type Statement struct {
	Entries []Entry
	// From and Through are the first and the last day, midnight UTC, of which the file
	// lists everything that was booked; zero: unknown. A camt.053 tells its period. Of a CSV
	// file, From is the day after its earliest; Through is for whoever exported it to say.
	From, Through time.Time
	// Partial says why a camt.053 covers no days completely: "no_period", "gap",
	// "pages_missing", "collective_entries" (an entry sums up transactions and doesn't
	// list them). Such a file proves presence only.
	Partial string
	// Accounts are the accounts that the file is about, without spaces and hyphens, in
	// capitals, where the file or the configuration tells. They are for comparing only.
	Accounts []string
	Digest   string // SHA-256 of the file, hexadecimal
}

// An Entry is one line of a statement, or one transaction of a collective entry.
type Entry struct {
	// References are those that the order may have travelled with, such as the
	// EndToEndId: exactly as printed, but for space around them.
	References []string
	ID         string // the bank's id of the entry; empty: it has none
	// Amount is never negative. It is zero without a currency where a collective entry
	// doesn't tell the transaction's own.
	Amount providers.Money
	Debit  bool      // money left the account
	Booked time.Time // a day as the bank has it, midnight UTC; zero: not told
	Status Status
}

// A Status says what an entry is worth.
type Status string

// The statuses of an entry.
const (
	Booked   Status = "booked"
	Pending  Status = "pending"  // announced, or for information: it proves nothing
	Reversed Status = "reversed" // takes an earlier entry back, or returns its money
)

// A Format says how a file is to be read.
type Format string

// The formats. Auto takes what begins with "<" for camt.053.
const (
	Auto    Format = ""
	CSV     Format = "csv"
	CAMT053 Format = "camt.053"
)

// An Error says what in a file can't be read, and where. It never holds a value from
// the file.
type Error struct {
	Line    int    // from 1; 0: the file as a whole
	Column  string // a column as the configuration names it, or an XML element
	Problem string
}

func (e *Error) Error() string {
	switch {
	case e.Line == 0 && e.Column == "":
		return "the statement " + e.Problem
	case e.Line == 0:
		return fmt.Sprintf("column %s: %s", e.Column, e.Problem)
	case e.Column == "":
		return fmt.Sprintf("line %d: %s", e.Line, e.Problem)
	}
	return fmt.Sprintf("line %d, %s: %s", e.Line, e.Column, e.Problem)
}

// Read reads a file whole, or not at all: one line that can't be read may be the one
// that matters. columns is for CSV; nil where none is configured. Errors about the file
// are an *[Error].
func Read(r io.Reader, format Format, columns *CSVConfig) (Statement, error) {
	b, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return Statement{}, fmt.Errorf("read the statement: %w", err)
	}
	if len(b) > MaxBytes {
		return Statement{}, &Error{Problem: fmt.Sprintf("has more than %d MiB; export fewer days at a time", MaxBytes>>20)}
	}
	digest := sha256.Sum256(b)
	text := bytes.TrimPrefix(b, []byte("\ufeff"))
	if !utf8.Valid(text) {
		return Statement{}, &Error{Line: invalidLine(text), Problem: "isn't UTF-8; export the file as UTF-8"}
	}
	if format == Auto {
		format = CSV
		if bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("<")) {
			format = CAMT053
		}
	}
	var s Statement
	switch format {
	case CSV:
		if columns == nil {
			return Statement{}, errors.New("a CSV statement needs its columns in the configuration: which one holds the reference, the amount, the day")
		}
		s, err = columns.read(text)
	case CAMT053:
		s, err = readCAMT(text)
	default:
		return Statement{}, errors.New("the format of a statement is csv or camt.053")
	}
	if err != nil {
		return Statement{}, err
	}
	s.Digest = hex.EncodeToString(digest[:])
	return s, nil
}

// invalidLine is the line of the first byte that isn't UTF-8.
func invalidLine(b []byte) int {
	line := 1
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 {
			break
		}
		if r == '\n' {
			line++
		}
		b = b[size:]
	}
	return line
}
