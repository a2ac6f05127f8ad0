package statement_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onceward/onceward/statement"
)

const (
	booked = `<Ntry><Amt Ccy="EUR">1.00</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts>BOOK</Sts>`
	group  = `<GrpHdr><CreDtTm>2026-12-01T05:00:00Z</CreDtTm></GrpHdr>`
)

func camt(inside string) string {
	return `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.02"><BkToCstmrStmt>` + inside + `</BkToCstmrStmt></Document>`
}

func stmt(account, from, to, rest string) string {
	return fmt.Sprintf(`<Stmt><FrToDt><FrDtTm>%s</FrDtTm><ToDtTm>%s</ToDtTm></FrToDt><Acct><Id><IBAN>%s</IBAN></Id></Acct>%s</Stmt>`, from, to, account, rest)
}

func readXML(text string) (statement.Statement, error) {
	return statement.Read(strings.NewReader(text), statement.Auto, nil)
}

func TestCAMTThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text   string
		column string
	}{
		"no statement in it":       {camt(group), "Stmt"},
		"a notification":           {strings.ReplaceAll(camt(""), "BkToCstmrStmt", "BkToCstmrDbtCdtNtfctn"), "BkToCstmrStmt"},
		"cut in an entry":          {camt("<Stmt>" + booked)[:150], ""},
		"cut behind an entry":      {strings.TrimSuffix(camt("<Stmt>"+booked+"</Ntry></Stmt>"), "</BkToCstmrStmt></Document>"), ""},
		"cut at the very end":      {strings.TrimSuffix(camt("<Stmt>"+booked+"</Ntry></Stmt>"), "</Document>"), ""},
		"a document type":          {"<!DOCTYPE d [<!ENTITY e \"secret\">]>" + camt("<Stmt></Stmt>"), ""},
		"an entity of its own":     {camt("<Stmt><Ntry><NtryRef>&secret;</NtryRef></Ntry></Stmt>"), ""},
		"another encoding":         {`<?xml version="1.0" encoding="ISO-8859-1"?>` + camt("<Stmt></Stmt>"), ""},
		"no amount":                {camt("<Stmt><Ntry><CdtDbtInd>DBIT</CdtDbtInd><Sts>BOOK</Sts></Ntry></Stmt>"), "Amt"},
		"an amount in words":       {camt("<Stmt>" + strings.Replace(booked, "1.00", "secret", 1) + "</Ntry></Stmt>"), "Amt"},
		"a negative amount":        {camt("<Stmt>" + strings.Replace(booked, "1.00", "-1.00", 1) + "</Ntry></Stmt>"), "Amt"},
		"a tenth of a cent":        {camt("<Stmt>" + strings.Replace(booked, "1.00", "1.001", 1) + "</Ntry></Stmt>"), "Amt"},
		"an unknown currency":      {camt("<Stmt>" + strings.Replace(booked, "EUR", "secret", 1) + "</Ntry></Stmt>"), "Amt"},
		"no direction":             {camt("<Stmt>" + strings.Replace(booked, "DBIT", "", 1) + "</Ntry></Stmt>"), "CdtDbtInd"},
		"a direction of its own":   {camt("<Stmt>" + strings.Replace(booked, "DBIT", "secret", 1) + "</Ntry></Stmt>"), "CdtDbtInd"},
		"no status":                {camt("<Stmt>" + strings.Replace(booked, "<Sts>BOOK</Sts>", "", 1) + "</Ntry></Stmt>"), "Sts"},
		"a day that isn't":         {camt("<Stmt>" + booked + "<BookgDt><Dt>secret</Dt></BookgDt></Ntry></Stmt>"), "BookgDt"},
		"a transaction's amount":   {camt("<Stmt>" + booked + `<NtryDtls><TxDtls><Amt Ccy="EUR">secret</Amt></TxDtls></NtryDtls></Ntry></Stmt>`), "TxDtls/Amt"},
		"a transaction's way":      {camt("<Stmt>" + booked + `<NtryDtls><TxDtls><CdtDbtInd>secret</CdtDbtInd></TxDtls></NtryDtls></Ntry></Stmt>`), "CdtDbtInd"},
		"elements that cross":      {camt("<Stmt><Ntry><Amt></Ntry></Amt></Stmt>"), ""},
		"something behind the end": {camt("<Stmt></Stmt>") + "<", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := readXML("\n" + tc.text)
			wantError(t, err, 2, tc.column, "secret")
		})
	}
}

// Days count only if every one of them is whole.
func TestWhichDaysAreCovered(t *testing.T) {
	t.Parallel()
	const from, to = "2026-11-27T00:00:00Z", "2026-11-30T23:59:59Z"
	pages := func(number, last string) string {
		return "<StmtPgntn><PgNb>" + number + "</PgNb><LastPgInd>" + last + "</LastPgInd></StmtPgntn>"
	}
	const batch = booked + `<NtryDtls><Btch>%s</Btch>%s</NtryDtls></Ntry>`
	const listed = `<TxDtls><Amt Ccy="EUR">1.00</Amt></TxDtls>`
	for name, tc := range map[string]struct {
		text          string
		from, through int // of November 2026; 0: unknown
		partial       string
	}{
		"whole days":                          {group + stmt("A", from, to, ""), 27, 30, ""},
		"to the millisecond":                  {group + stmt("A", from, "2026-11-30T23:59:59.999+01:00", ""), 27, 30, ""},
		"to the minute":                       {group + stmt("A", from, "2026-11-30T23:59:00", ""), 27, 30, ""},
		"to the hour 24":                      {group + stmt("A", from, "2026-11-30T24:00:00", ""), 27, 30, ""},
		"to midnight, which ends the day":     {group + stmt("A", from, "2026-11-30T00:00:00", ""), 27, 29, ""},
		"to the afternoon":                    {group + stmt("A", from, "2026-11-30T17:00:00", ""), 27, 29, ""},
		"from the afternoon":                  {group + stmt("A", "2026-11-26T12:00:00", to, ""), 27, 30, ""},
		"made before its end":                 {`<GrpHdr><CreDtTm>2026-11-29T18:00:00Z</CreDtTm></GrpHdr>` + stmt("A", from, to, ""), 27, 28, ""},
		"its own making counts, not the file": {group + stmt("A", from, to, "<CreDtTm>2026-11-29T18:00:00Z</CreDtTm>"), 27, 28, ""},
		"less than a day":                     {group + stmt("A", "2026-11-30T00:00:00", "2026-11-30T17:00:00", ""), 0, 0, "no_period"},
		"no period":                           {group + "<Stmt></Stmt>", 0, 0, "no_period"},
		"half a period":                       {group + stmt("A", from, "", ""), 0, 0, "no_period"},
		"a period in words":                   {group + stmt("A", from, "the end of November", ""), 0, 0, "no_period"},
		"nobody knows when it was made":       {stmt("A", from, to, ""), 0, 0, "no_period"},
		"the only page":                       {group + stmt("A", from, to, pages("1", "true")), 27, 30, ""},
		"the first page of several":           {group + stmt("A", from, to, pages("1", "false")), 0, 0, "pages_missing"},
		"the last page of several":            {group + stmt("A", from, to, pages("2", "true")), 0, 0, "pages_missing"},
		"a page of the message": {
			`<GrpHdr><CreDtTm>2026-12-01T05:00:00Z</CreDtTm><MsgPgntn><PgNb>2</PgNb><LastPgInd>1</LastPgInd></MsgPgntn></GrpHdr>` + stmt("A", from, to, ""), 0, 0, "pages_missing"},
		"day by day":                 {group + stmt("A", "2026-11-29T00:00:00", "2026-11-29T23:59:59", "") + stmt("A", "2026-11-27T00:00:00", "2026-11-28T23:59:59", ""), 27, 29, ""},
		"a day twice":                {group + stmt("A", from, to, "") + stmt("A", "2026-11-28T00:00:00", "2026-11-28T23:59:59", ""), 27, 30, ""},
		"a day left out":             {group + stmt("A", "2026-11-29T00:00:00", to, "") + stmt("A", "2026-11-26T00:00:00", "2026-11-27T23:59:59", ""), 0, 0, "gap"},
		"two accounts":               {group + stmt("A", from, to, "") + stmt("B", "2026-11-28T00:00:00", "2026-11-29T23:59:59", ""), 28, 29, ""},
		"two accounts on other days": {group + stmt("A", "2026-11-26T00:00:00", "2026-11-27T23:59:59", "") + stmt("B", "2026-11-28T00:00:00", to, ""), 0, 0, "gap"},
		"one account's days unknown": {group + stmt("A", from, to, "") + "<Stmt></Stmt>", 0, 0, "no_period"},
		"a batch, listed":            {group + stmt("A", from, to, fmt.Sprintf(batch, "<NbOfTxs>1</NbOfTxs>", listed)), 27, 30, ""},
		"a batch of nobody knows":    {group + stmt("A", from, to, fmt.Sprintf(batch, "", listed)), 27, 30, ""},
		"a batch, half listed":       {group + stmt("A", from, to, fmt.Sprintf(batch, "<NbOfTxs>2</NbOfTxs>", listed)), 0, 0, "collective_entries"},
		"a batch, not listed":        {group + stmt("A", from, to, fmt.Sprintf(batch, "<NbOfTxs>1</NbOfTxs>", "")), 0, 0, "collective_entries"},
		"a batch, not even counted":  {group + stmt("A", from, to, fmt.Sprintf(batch, "", "")), 0, 0, "collective_entries"},
		"a batch of none":            {group + stmt("A", from, to, fmt.Sprintf(batch, "<NbOfTxs>0</NbOfTxs>", "")), 0, 0, "collective_entries"},
		"a batch of words":           {group + stmt("A", from, to, fmt.Sprintf(batch, "<NbOfTxs>x</NbOfTxs>", listed)), 0, 0, "collective_entries"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := readXML(camt(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(slices.Compact(slices.Clone(got.Accounts)), got.Accounts); diff != "" {
				t.Errorf("accounts are told twice (-want +got):\n%s", diff)
			}
			days := func(d int) (day time.Time) {
				if d != 0 {
					day = november(d)
				}
				return day
			}
			want := statement.Statement{From: days(tc.from), Through: days(tc.through), Partial: tc.partial}
			if diff := cmp.Diff(want, statement.Statement{From: got.From, Through: got.Through, Partial: got.Partial}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatAnEntryIs(t *testing.T) {
	t.Parallel()
	plain := statement.Entry{Amount: eur(100), Debit: true, Status: statement.Booked}
	with := func(change func(*statement.Entry)) statement.Entry {
		e := plain
		change(&e)
		return e
	}
	for name, tc := range map[string]struct {
		text string
		want statement.Entry
	}{
		"nothing but money": {booked, plain},
		"for information":   {strings.Replace(booked, "BOOK", "INFO", 1), with(func(e *statement.Entry) { e.Status = statement.Pending })},
		"in future":         {strings.Replace(booked, "BOOK", "<Cd>FUTR</Cd>", 1), with(func(e *statement.Entry) { e.Status = statement.Pending })},
		"booked, by code":   {strings.Replace(booked, "BOOK", "\n<Cd> BOOK </Cd>\n", 1), plain},
		"not reversed":      {booked + "<RvslInd>false</RvslInd>", plain},
		"reversed":          {booked + "<RvslInd>1</RvslInd>", with(func(e *statement.Entry) { e.Status = statement.Reversed })},
		"to be reversed":    {strings.Replace(booked, "BOOK", "PDNG", 1) + "<RvslInd>true</RvslInd>", with(func(e *statement.Entry) { e.Status = statement.Pending })},
		"a day with a zone": {booked + "<BookgDt><Dt>2026-11-30+01:00</Dt></BookgDt>", with(func(e *statement.Entry) { e.Booked = november(30) })},
		"zeros before":      {strings.Replace(booked, "1.00", "+01.00000", 1), plain},
		"no money":          {strings.Replace(booked, "1.00", "0.00", 1), with(func(e *statement.Entry) { e.Amount = eur(0) })},
		"the bank's own":    {booked + "<AcctSvcrRef>B</AcctSvcrRef>", with(func(e *statement.Entry) { e.ID, e.References = "B", []string{"B"} })},
		"a batch's names": {booked + "<NtryDtls><Btch><MsgId>M</MsgId><PmtInfId>P</PmtInfId></Btch></NtryDtls>",
			with(func(e *statement.Entry) { e.References = []string{"M", "P"} })},
		"another way than the sum": {booked + "<NtryDtls><TxDtls><CdtDbtInd>CRDT</CdtDbtInd></TxDtls></NtryDtls>",
			with(func(e *statement.Entry) { e.Debit = false })},
		"its own amount": {booked + `<NtryDtls><TxDtls><Amt Ccy="EUR">0.90</Amt><AmtDtls><TxAmt><Amt Ccy="EUR">0.80</Amt></TxAmt></AmtDtls></TxDtls></NtryDtls>`,
			with(func(e *statement.Entry) { e.Amount = eur(90) })},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := readXML(camt("<Stmt>" + tc.text + "</Ntry></Stmt>"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]statement.Entry{tc.want}, got.Entries); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
