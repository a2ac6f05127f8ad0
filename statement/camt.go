package statement

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/onceward/onceward/providers"
)

// readCAMT reads an ISO 20022 BankToCustomerStatement. Elements are known by their local
// names, which versions 001.02 to 001.13 share; what is new in one is looked for in all.
func readCAMT(text []byte) (Statement, error) {
	c := camtReader{xml: xml.NewDecoder(bytes.NewReader(text))}
	if err := c.document(); err != nil {
		return Statement{}, err
	}
	return c.statement(), nil
}

// A camtReader reads entry by entry: a statement may be large.
type camtReader struct {
	xml     *xml.Decoder
	header  camtHeader
	periods []period
	entries []Entry
	partial string
}

type camtHeader struct {
	Created string    `xml:"CreDtTm"`
	Pages   *camtPage `xml:"MsgPgntn"`
}

type camtPage struct {
	Number string `xml:"PgNb"`
	Last   string `xml:"LastPgInd"`
}

type camtPeriod struct {
	From string `xml:"FrDtTm"`
	To   string `xml:"ToDtTm"`
}

type camtAccount struct {
	IBAN  string `xml:"Id>IBAN"`
	Other string `xml:"Id>Othr>Id"`
}

// document finds the statements in the document.
func (c *camtReader) document() error {
	if err := c.enter("Document"); err != nil {
		return err
	}
	if err := c.enter("BkToCstmrStmt"); err != nil {
		return err
	}
	found := false
	err := c.children(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "GrpHdr":
			return c.decode(&c.header, e)
		case "Stmt":
			found = true
			return c.account()
		}
		return c.xml.Skip()
	})
	if err == nil && !found {
		return c.bad("Stmt", "is missing: the file holds no statement")
	}
	if err != nil {
		return err
	}
	// What comes after the document must be well-formed too, or it was cut.
	for {
		switch t, err := c.xml.Token(); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return c.malformed()
		default:
			if err := c.harmless(t); err != nil {
				return err
			}
		}
	}
}

// enter goes into the next element, which must be the named one.
func (c *camtReader) enter(name string) error {
	for {
		t, err := c.xml.Token()
		if err != nil {
			return c.malformed()
		}
		if e, ok := t.(xml.StartElement); ok {
			if e.Name.Local != name {
				return c.bad(name, "is expected here: the file isn't a camt.053 (BankToCustomerStatement)")
			}
			return nil
		}
		if err := c.harmless(t); err != nil {
			return err
		}
	}
}

// children visits the elements inside the one that was entered, until its end.
func (c *camtReader) children(visit func(xml.StartElement) error) error {
	for {
		t, err := c.xml.Token()
		if err != nil {
			return c.malformed()
		}
		switch t := t.(type) {
		case xml.StartElement:
			if err := visit(t); err != nil {
				if _, ok := errors.AsType[*Error](err); ok {
					return err
				}
				return c.malformed()
			}
		case xml.EndElement:
			return nil
		default:
			if err := c.harmless(t); err != nil {
				return err
			}
		}
	}
}

// harmless refuses a document type: a statement has none, and its entities could be
// anything.
func (c *camtReader) harmless(t xml.Token) error {
	if _, ok := t.(xml.Directive); ok {
		return c.bad("", "a document type has no place in a statement")
	}
	return nil
}

func (c *camtReader) decode(into any, e xml.StartElement) error {
	return c.xml.DecodeElement(into, &e)
}

func (c *camtReader) bad(element, problem string) error {
	line, _ := c.xml.InputPos()
	return &Error{line, element, problem}
}

func (c *camtReader) malformed() error {
	return c.bad("", "isn't well-formed XML in UTF-8, or ends too early")
}

// account reads one Stmt, which is about one account.
func (c *camtReader) account() error {
	var created string
	var pages *camtPage
	var covered camtPeriod
	var about camtAccount
	err := c.children(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "CreDtTm":
			return c.decode(&created, e)
		case "StmtPgntn":
			return c.decode(&pages, e)
		case "FrToDt":
			return c.decode(&covered, e)
		case "Acct":
			return c.decode(&about, e)
		case "Ntry":
			return c.entry(e)
		}
		return c.xml.Skip()
	})
	if err != nil {
		return err
	}
	if !pages.whole() {
		c.lacks("pages_missing")
	}
	c.periods = append(c.periods, covered.days(account(about.IBAN+about.Other), created, c.header.Created))
	return nil
}

// whole reports whether this is all there is.
func (p *camtPage) whole() bool {
	return p == nil || strings.Trim(strings.TrimSpace(p.Number), "0") == "1" && isTrue(p.Last)
}

func isTrue(s string) bool {
	s = strings.TrimSpace(s)
	return s == "true" || s == "1"
}

// lacks notes why the file covers nothing completely; the first reason stands.
func (c *camtReader) lacks(why string) {
	if c.partial == "" {
		c.partial = why
	}
}

func (c *camtReader) statement() Statement {
	s := Statement{Entries: c.entries}
	if !c.header.Pages.whole() {
		c.lacks("pages_missing")
	}
	var why string
	s.From, s.Through, why = common(c.periods)
	if why != "" {
		c.lacks(why)
	}
	if c.partial != "" {
		s.From, s.Through, s.Partial = time.Time{}, time.Time{}, c.partial
	}
	for _, p := range c.periods { // sorted by account
		if p.account != "" && !slices.Contains(s.Accounts, p.account) {
			s.Accounts = append(s.Accounts, p.account)
		}
	}
	return s
}

// amountOf reads an element of an amount, such as Amt.
func (c *camtReader) amountOf(element string, a camtAmount) (providers.Money, error) {
	decimal := strings.TrimPrefix(strings.TrimSpace(a.Decimal), "+")
	// The schema allows five digits after the point, whatever the currency; and zeros
	// before the number.
	if whole, fraction, pointed := strings.Cut(decimal, "."); pointed {
		decimal = whole
		if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
			decimal += "." + fraction
		}
	}
	for len(decimal) > 1 && decimal[0] == '0' && decimal[1] != '.' {
		decimal = decimal[1:]
	}
	m, err := money(decimal, strings.TrimSpace(a.Currency))
	if err != nil {
		_, problem := problemOf(err)
		return m, c.bad(element, problem)
	}
	return m, nil
}
