package sandbox

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onceward/onceward/providers"
	"pgregory.net/rapid"
)

func TestParseFaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		list string
		want []Fault
	}{
		{"", nil},
		{"  ", nil},
		{"email.send:lose-reply", []Fault{{"email.send", LoseReply, 1}}},
		{"email_send:lose-reply", []Fault{{"email.send", LoseReply, 1}}},
		{"payment_order.create:hang:3", []Fault{{"payment_order.create", Hang, 3}}},
		{"payment_order_create:hang:3", []Fault{{"payment_order.create", Hang, 3}}},
		{"refund:refuse:always", []Fault{{"refund", Refuse, Always}}},
		{"refund:lose-reply, refund:unavailable:2 ,refund:lose-reply", []Fault{
			{"refund", LoseReply, 1}, {"refund", Unavailable, 2}, {"refund", LoseReply, 1},
		}},
		{"refund:act-late:1000000", []Fault{{"refund", ActLate, 1_000_000}}},
	} {
		t.Run(tt.list, func(t *testing.T) {
			t.Parallel()
			got, err := ParseFaults(tt.list)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseFaultsRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ list, part, help string }{
		{"refund", `"refund"`, "ACTION:FAULT"},
		{"refund:hang:1:2", `"refund:hang:1:2"`, "ACTION:FAULT:COUNT"},
		{"refund:hang,", `""`, "ACTION:FAULT"},
		{",", `""`, "ACTION:FAULT"},
		{"invoice:hang", `"invoice:hang"`, "email.send, payment_order.create, refund"},
		{":hang", `":hang"`, "email.send, payment_order.create, refund"},
		{"Refund:hang", `"Refund:hang"`, "email.send, payment_order.create, refund"},
		{"payment.order.create:hang", `"payment.order.create:hang"`, "payment_order.create"},
		{"refund:explode", `"refund:explode"`, "unavailable, lose-request, lose-reply"},
		{"refund:", `"refund:"`, "crash-before, crash-after"},
		{"refund:hang,refund:lose_reply:2", `"refund:lose_reply:2"`, "lose-reply"},
		{"refund:hang:0", `"refund:hang:0"`, "from 1 to 1000000"},
		{"refund:hang:-1", `"refund:hang:-1"`, `"always"`},
		{"refund:hang:+1", `"refund:hang:+1"`, `"always"`},
		{"refund:hang:", `"refund:hang:"`, `"always"`},
		{"refund:hang:1000001", `"refund:hang:1000001"`, "from 1 to 1000000"},
		{"refund:hang:99999999999999999999", `99999999999999999999"`, "from 1 to 1000000"},
		{"refund:hang:Always", `"refund:hang:Always"`, `"always"`},
	} {
		t.Run(tt.list, func(t *testing.T) {
			t.Parallel()
			got, err := ParseFaults(tt.list)
			problem, ok := errors.AsType[*OptionError](err)
			if !ok || got != nil {
				t.Fatalf("ParseFaults = %v, %v; want an *OptionError", got, err)
			}
			for _, want := range []string{"--sandbox-faults", tt.part, tt.help} {
				if !strings.Contains(problem.Error(), want) {
					t.Errorf("error %q doesn't say %s", problem, want)
				}
			}
		})
	}
}

func TestFaultsAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Fault {
			return Fault{
				Action: rapid.SampledFrom(actions).Draw(t, "action"),
				Kind:   rapid.SampledFrom(FaultKinds()).Draw(t, "kind"),
				Count:  rapid.OneOf(rapid.Just(Always), rapid.IntRange(1, 1_000_000)).Draw(t, "count"),
			}
		}), 1, 5).Draw(t, "faults")
		var parts []string
		for _, f := range want {
			parts = append(parts, f.String())
		}
		got, err := ParseFaults(strings.Join(parts, ","))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("faults (-want +got):\n%s", diff)
		}
	})
}

func TestOptionsThatDoNotFit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		options Options
		flag    string
	}{
		{"lease as long as the deadline", Options{Deadline: 5 * time.Second, Lease: 5 * time.Second}, "--sandbox-lease"},
		{"lease shorter than the deadline", Options{Deadline: 5 * time.Second, Lease: time.Second}, "--sandbox-lease"},
		{"deadline longer than the default lease", Options{Deadline: time.Minute}, "--sandbox-lease"},
		{"negative deadline", Options{Deadline: -1}, "--sandbox-deadline"},
		{"negative lease", Options{Lease: -1}, "--sandbox-lease"},
		{"negative settle", Options{Settle: -1}, "--sandbox-settle"},
		{"negative lag", Options{Lag: -1}, "--sandbox-lag"},
		{"negative window", Options{Window: -1}, "--sandbox-window"},
		{"unknown fault", Options{Faults: []Fault{{providers.RefundCreate, "explode", 1}}}, "--sandbox-faults"},
		{"unknown action", Options{Faults: []Fault{{"invoice", Hang, 1}}}, "--sandbox-faults"},
		{"fault without count", Options{Faults: []Fault{{providers.RefundCreate, Hang, 0}}}, "--sandbox-faults"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Open(t.Context(), fresh(t), tt.options)
			problem, ok := errors.AsType[*OptionError](err)
			if !ok || problem.Flag != tt.flag {
				t.Errorf("error = %v, want an *OptionError for %s", err, tt.flag)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	got, _ := open(t, fresh(t), Options{}).Traits(providers.RefundCreate)
	if got.Deadline != 5*time.Second || got.Lease != 10*time.Second || got.Window != 24*time.Hour || got.Settle != 0 || got.LookupLag != 0 {
		t.Errorf("traits of the zero options: %+v", got)
	}
}
