package statement

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// A CSVConfig says how an export is to be read. Only Columns is needed where the export
// has commas, points in its amounts, and days like 2026-11-30.
type CSVConfig struct {
	Columns Columns `yaml:"columns"`

	Delimiter string `yaml:"delimiter"`  // one character; default ","
	SkipLines int    `yaml:"skip_lines"` // lines before the header
	// DateFormat is made of YYYY, MM, DD and, if the column has a time, hh, mm, ss, with
	// what stands between them. Default "YYYY-MM-DD". The time is ignored.
	DateFormat   string `yaml:"date_format"`
	DecimalComma bool   `yaml:"decimal_comma"`
	Thousands    string `yaml:"thousands"` // what separates them, such as "."; default: nothing
	Currency     string `yaml:"currency"`  // of all entries, where no column tells it

	// Directions says which words of the direction column mean "debit", money that left,
	// and "credit". Without that column, Negative says which of the two a minus sign
	// means. Without both, every entry is a debit and a minus sign is an error.
	Directions map[string]string `yaml:"directions"`
	Negative   string            `yaml:"negative"`
	// Statuses says which words of the status column mean "booked", "pending",
	// "reversed", or "ignored": a line about something that didn't happen. Without that
	// column every entry is booked.
	Statuses map[string]string `yaml:"statuses"`

	Account string `yaml:"account"` // that the export is of; empty: not told
}

// Columns are the names of columns, exactly as the header has them.
type Columns struct {
	Reference []string `yaml:"reference"` // all that may hold the key or the provider's id
	ID        string   `yaml:"id"`        // optional: the bank's id of the entry
	Amount    string   `yaml:"amount"`
	Currency  string   `yaml:"currency"` // unless the configuration names the currency
	Booked    string   `yaml:"booked"`
	Direction string   `yaml:"direction"` // optional
	Status    string   `yaml:"status"`    // optional
}

// ignored is a status of lines that are no entries.
const ignored = "ignored"

// Check says what is wrong with a configuration, and what to write instead.
func (c CSVConfig) Check() error {
	_, err := c.compile()
	return err
}

// A csvReader is a configuration that was found right.
type csvReader struct {
	CSVConfig
	delimiter rune
	layout    string
	notation  notation
}

func (c CSVConfig) compile() (csvReader, error) {
	r := csvReader{CSVConfig: c, delimiter: ',', notation: notation{mark: ".", thousands: c.Thousands}}
	if c.DecimalComma {
		r.notation.mark = ","
	}
	var err error
	if r.layout, err = layout(c.DateFormat); err != nil {
		return r, err
	}
	if c.Delimiter != "" {
		var size int
		r.delimiter, size = utf8.DecodeRuneInString(c.Delimiter)
		if size != len(c.Delimiter) || r.delimiter == utf8.RuneError || strings.ContainsRune("\"\r\n\x00", r.delimiter) {
			return r, setting("delimiter", `is one character, such as ";" or "\t", and no quote or line break`)
		}
	}
	switch {
	case len(c.Columns.Reference) == 0:
		return r, setting("columns.reference", "lists the columns that may hold the key or the provider's id, at least one")
	case c.Columns.Amount == "":
		return r, setting("columns.amount", "names the column of the amount")
	case c.Columns.Booked == "":
		return r, setting("columns.booked", "names the column of the booking day")
	case (c.Columns.Currency == "") == (c.Currency == ""):
		return r, setting("columns.currency", "names the column of the currency, or currency names the one of all entries; give one of the two")
	case c.SkipLines < 0:
		return r, setting("skip_lines", "is not negative")
	case c.Thousands != "" && (utf8.RuneCountInString(c.Thousands) != 1 || c.Thousands == r.notation.mark || digits(c.Thousands)):
		return r, setting("thousands", "is one character, no digit, and not the one before the fraction")
	case c.Columns.Direction != "" && c.Negative != "":
		return r, setting("negative", "is for exports without a direction column; keep one of the two")
	case c.Negative != "" && c.Negative != "debit" && c.Negative != "credit":
		return r, setting("negative", "is debit or credit")
	}
	if _, err := money("0", c.Currency); c.Currency != "" && err != nil {
		return r, setting("currency", "is a current ISO 4217 code, such as EUR")
	}
	if err := words("direction", c.Columns.Direction, c.Directions, "debit", "credit"); err != nil {
		return r, err
	}
	return r, words("status", c.Columns.Status, c.Statuses, string(Booked), string(Pending), string(Reversed), ignored)
}

// words checks that the words of a column are given where there is one, and mean something.
func words(name, column string, given map[string]string, meanings ...string) error {
	plural := name + "s"
	if name == "status" {
		plural = "statuses"
	}
	if (column == "") != (len(given) == 0) {
		return setting(plural, "says what the words in columns."+name+" mean; give both or neither")
	}
	for _, meaning := range given {
		known := false
		for _, m := range meanings {
			known = known || m == meaning
		}
		if !known {
			return setting(plural, "gives each word one of these meanings: "+strings.Join(meanings, ", "))
		}
	}
	return nil
}

// layout is a date format as package time writes it.
func layout(format string) (string, error) {
	if format == "" {
		return time.DateOnly, nil
	}
	parts := map[string]string{"YYYY": "2006", "MM": "01", "DD": "02", "hh": "15", "mm": "04", "ss": "05"}
	var l strings.Builder
	seen := map[string]bool{}
next:
	for format != "" {
		for name, part := range parts {
			if rest, ok := strings.CutPrefix(format, name); ok && !seen[name] {
				seen[name], format = true, rest
				l.WriteString(part)
				continue next
			}
		}
		if !strings.ContainsRune("-./: ,T", rune(format[0])) {
			break
		}
		l.WriteByte(format[0])
		format = format[1:]
	}
	if format != "" || !seen["YYYY"] || !seen["MM"] || !seen["DD"] {
		return "", setting("date_format", `is made of YYYY, MM, DD and, for a time, hh, mm, ss, each once, such as "DD.MM.YYYY"`)
	}
	return l.String(), nil
}

func setting(name, problem string) error { return fmt.Errorf("statement: %s %s", name, problem) }
