package statement

import (
	"encoding/xml"
	"strconv"
	"strings"
	"time"

	"github.com/onceward/onceward/providers"
)

// What is read of an entry. Everything else, such as names and texts, is skipped.
type camtEntry struct {
	Reference string      `xml:"NtryRef"`
	Amount    camtAmount  `xml:"Amt"`
	Direction string      `xml:"CdtDbtInd"`
	Reversal  string      `xml:"RvslInd"`
	Status    *camtStatus `xml:"Sts"`
	Booked    camtDay     `xml:"BookgDt"`
	BankID    string      `xml:"AcctSvcrRef"`
	Details   []struct {
		Batch        *camtBatch        `xml:"Btch"`
		Transactions []camtTransaction `xml:"TxDtls"`
	} `xml:"NtryDtls"`
}

type camtAmount struct {
	Decimal  string `xml:",chardata"`
	Currency string `xml:"Ccy,attr"`
}

// A camtStatus is a word up to version 001.07, and a code inside an element since 001.08.
type camtStatus struct {
	Word string `xml:",chardata"`
	Code string `xml:"Cd"`
}

type camtDay struct {
	Day  string `xml:"Dt"`
	Time string `xml:"DtTm"`
}

type camtBatch struct {
	Message string `xml:"MsgId"`
	Payment string `xml:"PmtInfId"`
	Count   string `xml:"NbOfTxs"`
}

type camtTransaction struct {
	References struct {
		EndToEnd    string `xml:"EndToEndId"`
		Instruction string `xml:"InstrId"`
		Transaction string `xml:"TxId"`
		UETR        string `xml:"UETR"`
		Payment     string `xml:"PmtInfId"`
		BankID      string `xml:"AcctSvcrRef"`
	} `xml:"Refs"`
	Amount     *camtAmount `xml:"Amt"` // since 001.04
	Booked     *camtAmount `xml:"AmtDtls>TxAmt>Amt"`
	Instructed *camtAmount `xml:"AmtDtls>InstdAmt>Amt"`
	Direction  string      `xml:"CdtDbtInd"` // since 001.04
	Returned   *struct{}   `xml:"RtrInf"`
}

// entry reads one Ntry: as one entry, or as one for each of its transactions.
func (c *camtReader) entry(e xml.StartElement) error {
	var n camtEntry
	if err := c.decode(&n, e); err != nil {
		return err
	}
	entry := Entry{ID: first(n.BankID, n.Reference)}
	var err error
	if entry.Amount, err = c.amountOf("Amt", n.Amount); err != nil {
		return err
	}
	if entry.Debit, err = c.debit(n.Direction); err != nil {
		return err
	}
	if entry.Booked, err = c.day(n.Booked); err != nil {
		return err
	}
	if entry.Status, err = c.status(n); err != nil {
		return err
	}
	var transactions []camtTransaction
	for _, d := range n.Details {
		transactions = append(transactions, d.Transactions...)
		if d.Batch != nil && !d.Batch.listed(len(d.Transactions)) {
			c.lacks("collective_entries")
		}
		if d.Batch != nil && len(d.Transactions) == 0 {
			entry.References = references(d.Batch.Message, d.Batch.Payment)
		}
	}
	if len(transactions) == 0 {
		entry.References = append(entry.References, references(n.BankID)...)
		c.entries = append(c.entries, entry)
		return nil
	}
	for _, t := range transactions {
		one, err := c.transaction(entry, t, len(transactions) == 1)
		if err != nil {
			return err
		}
		c.entries = append(c.entries, one)
	}
	return nil
}

// listed reports whether a batch names all its transactions.
func (b *camtBatch) listed(listed int) bool {
	count := strings.TrimSpace(b.Count)
	if count == "" {
		return listed > 0
	}
	n, err := strconv.Atoi(count)
	return err == nil && listed > 0 && listed >= n
}

// transaction is an entry's transaction as an entry of its own.
func (c *camtReader) transaction(entry Entry, t camtTransaction, alone bool) (Entry, error) {
	r := t.References
	entry.References = references(r.EndToEnd, r.Instruction, r.Transaction, r.UETR, r.Payment, r.BankID)
	entry.ID = first(r.BankID, entry.ID, r.Transaction)
	if t.Returned != nil && entry.Status == Booked {
		entry.Status = Reversed
	}
	var err error
	if strings.TrimSpace(t.Direction) != "" {
		if entry.Debit, err = c.debit(t.Direction); err != nil {
			return entry, err
		}
	}
	// What was ordered, before charges and in the order's currency, is what compares;
	// then what was booked for it.
	switch {
	case t.Instructed != nil:
		entry.Amount, err = c.amountOf("InstdAmt", *t.Instructed)
	case t.Amount != nil:
		entry.Amount, err = c.amountOf("TxDtls/Amt", *t.Amount)
	case t.Booked != nil:
		entry.Amount, err = c.amountOf("TxAmt", *t.Booked)
	case !alone:
		entry.Amount = providers.Money{}
	}
	return entry, err
}

func (c *camtReader) debit(indicator string) (bool, error) {
	switch strings.TrimSpace(indicator) {
	case "DBIT":
		return true, nil
	case "CRDT":
		return false, nil
	}
	return false, c.bad("CdtDbtInd", "is DBIT or CRDT")
}

// status: what isn't booked (PDNG, INFO, FUTR, a bank's own word) proves nothing.
func (c *camtReader) status(n camtEntry) (Status, error) {
	switch {
	case n.Status == nil:
		return "", c.bad("Sts", "is missing")
	case strings.TrimSpace(n.Status.Word+n.Status.Code) != "BOOK":
		return Pending, nil
	case isTrue(n.Reversal):
		return Reversed, nil
	}
	return Booked, nil
}

// day is the day as the bank writes it, whatever its time zone.
func (c *camtReader) day(d camtDay) (time.Time, error) {
	written := first(d.Day, d.Time)
	if written == "" {
		return time.Time{}, nil
	}
	day, err := time.Parse(time.DateOnly, written[:min(len(written), len(time.DateOnly))])
	if err != nil {
		return time.Time{}, c.bad("BookgDt", "isn't a day")
	}
	return day, nil
}

// references are those that say something: NOTPROVIDED stands where the payer gave none.
func references(all ...string) []string {
	var given []string
	for _, r := range all {
		if r = strings.TrimSpace(r); r != "" && r != "NOTPROVIDED" {
			given = append(given, r)
		}
	}
	return given
}

// first is the first that isn't empty.
func first(all ...string) string {
	for _, s := range all {
		if s = strings.TrimSpace(s); s != "" {
			return s
		}
	}
	return ""
}
