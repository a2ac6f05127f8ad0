package statement

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"strings"
	"time"
)

// read reads an export. Its columns may stand in any order, and among others.
func (c CSVConfig) read(text []byte) (Statement, error) {
	config, err := c.compile()
	if err != nil {
		return Statement{}, err
	}
	for range c.SkipLines {
		_, rest, found := bytes.Cut(text, []byte("\n"))
		if !found {
			return Statement{}, &Error{Problem: "has no header after the lines to skip"}
		}
		text = rest
	}
	rows := csv.NewReader(bytes.NewReader(text))
	rows.Comma, rows.ReuseRecord = config.delimiter, true
	header, err := rows.Read()
	if errors.Is(err, io.EOF) {
		return Statement{}, &Error{Problem: "is empty; it needs a header, at least"}
	}
	if err != nil {
		return Statement{}, config.malformed(err)
	}
	line, _ := rows.FieldPos(0)
	index, err := config.columns(header, line+c.SkipLines)
	if err != nil {
		return Statement{}, err
	}
	var s Statement
	if c.Account != "" {
		s.Accounts = []string{account(c.Account)}
	}
	for {
		record, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return Statement{}, config.malformed(err)
		}
		entry, ok, err := row{config, index, record, rows}.entry()
		if err != nil {
			return Statement{}, err
		}
		// An export may begin in the middle of a day, such as one of the last hundred lines.
		if from := entry.Booked.Add(24 * time.Hour); !entry.Booked.IsZero() && (s.From.IsZero() || from.Before(s.From)) {
			s.From = from
		}
		if ok {
			s.Entries = append(s.Entries, entry)
		}
	}
}

func (c csvReader) malformed(err error) error {
	bad, ok := errors.AsType[*csv.ParseError](err)
	switch {
	case !ok:
		return &Error{Problem: "can't be read as CSV"}
	case errors.Is(err, csv.ErrFieldCount):
		return &Error{Line: bad.Line + c.SkipLines, Problem: "has more or fewer fields than the header; is the delimiter right?"}
	}
	return &Error{Line: bad.Line + c.SkipLines, Problem: "has a quote in a wrong place, or one that isn't closed"}
}

// columns finds where the columns stand.
func (c csvReader) columns(header []string, line int) (map[string]int, error) {
	wanted := append([]string{c.Columns.ID, c.Columns.Amount, c.Columns.Currency, c.Columns.Booked, c.Columns.Direction, c.Columns.Status}, c.Columns.Reference...)
	index := map[string]int{}
	for i, name := range header {
		name = strings.TrimSpace(name)
		if _, twice := index[name]; twice {
			index[name] = -1
			continue
		}
		index[strings.Clone(name)] = i
	}
	for _, name := range wanted {
		if name == "" {
			continue
		}
		switch i, ok := index[name]; {
		case !ok:
			return nil, &Error{line, "column " + name, "isn't in the header; name it as the file does, and check the delimiter"}
		case i < 0:
			return nil, &Error{line, "column " + name, "stands in the header twice"}
		}
	}
	return index, nil
}

// A row is one line of the file.
type row struct {
	csvReader
	index  map[string]int
	record []string
	rows   *csv.Reader
}

// field is what a column holds; empty where there is no such column.
func (r row) field(column string) string {
	if column == "" {
		return ""
	}
	return strings.TrimSpace(r.record[r.index[column]])
}

func (r row) bad(column, problem string) error {
	line, _ := r.rows.FieldPos(r.index[column])
	return &Error{line + r.SkipLines, "column " + column, problem}
}

// entry reads a line; ok is false if it is about nothing that happened.
func (r row) entry() (e Entry, ok bool, err error) {
	e.Status = Booked
	if column := r.Columns.Status; column != "" {
		meaning, known := r.Statuses[r.field(column)]
		if !known {
			return e, false, r.bad(column, "has a word that statuses doesn't explain")
		}
		if meaning == ignored {
			return e, false, nil
		}
		e.Status = Status(meaning)
	}
	if err := r.amount(&e); err != nil {
		return e, false, err
	}
	if day := r.field(r.Columns.Booked); day != "" || e.Status != Pending {
		booked, err := time.Parse(r.layout, day)
		if err != nil {
			return e, false, r.bad(r.Columns.Booked, "isn't a day as date_format describes it")
		}
		e.Booked = booked.Truncate(24 * time.Hour)
	}
	// A field is a part of its line, and that holds names besides.
	e.ID = strings.Clone(r.field(r.Columns.ID))
	for _, column := range r.Columns.Reference {
		if reference := r.field(column); reference != "" {
			e.References = append(e.References, strings.Clone(reference))
		}
	}
	return e, true, nil
}

// amount reads the amount and which way it went.
func (r row) amount(e *Entry) error {
	written := r.field(r.Columns.Amount)
	unsigned, negative := strings.CutPrefix(strings.Replace(written, "\u2212", "-", 1), "-")
	e.Debit = true
	switch column := r.Columns.Direction; {
	case column != "":
		meaning, known := r.Directions[r.field(column)]
		if !known {
			return r.bad(column, "has a word that directions doesn't explain")
		}
		e.Debit = meaning == "debit"
		fallthrough
	case r.Negative == "":
		if negative {
			return r.bad(r.Columns.Amount, "has a minus sign; say with negative what it means")
		}
	default:
		e.Debit = negative == (r.Negative == "debit")
		if !negative {
			unsigned = strings.TrimPrefix(unsigned, "+")
		}
	}
	decimal, ok := r.notation.plain(unsigned)
	if !ok {
		return r.bad(r.Columns.Amount, "isn't an amount as decimal_comma and thousands describe it")
	}
	code := r.Currency
	if r.Columns.Currency != "" {
		code = r.field(r.Columns.Currency)
	}
	var err error
	if e.Amount, err = money(decimal, code); err != nil {
		field, problem := problemOf(err)
		if field == "currency" && r.Columns.Currency != "" {
			return r.bad(r.Columns.Currency, problem)
		}
		return r.bad(r.Columns.Amount, problem)
	}
	return nil
}
