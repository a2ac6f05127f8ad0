package sandbox

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/onceward/onceward/providers"
)

// A FaultKind is one way to misbehave.
type FaultKind string

// The ways to misbehave. Each counts when it is applied, and KeyIgnored and PruneKey
// are applied only to a request whose key is remembered.
const (
	Unavailable FaultKind = "unavailable"  // can't be reached, nothing sent
	LoseRequest FaultKind = "lose-request" // the connection breaks before it acts
	LoseReply   FaultKind = "lose-reply"   // acts, then the connection breaks
	Hang        FaultKind = "hang"         // acts at once, doesn't answer before the deadline
	ActLate     FaultKind = "act-late"     // acts only after the deadline, before the lease is over
	ServerError FaultKind = "server-error" // acts, answers 500
	CachedError FaultKind = "cached-error" // doesn't act, answers 500, and 500 again for the same key
	Refuse      FaultKind = "refuse"       // a definite no
	InFlight    FaultKind = "in-flight"    // acts, and answers that the key's request is still running
	KeyIgnored  FaultKind = "key-ignored"  // forgets for this request that it knows the key: acts again
	PruneKey    FaultKind = "prune-key"    // forgets the key for good; the look-up still finds the effect
	RejectLater FaultKind = "reject-later" // accepts, then the object turns rejected
	CrashBefore FaultKind = "crash-before" // the whole process is killed just before it acts
	CrashAfter  FaultKind = "crash-after"  // ... just after it acted
)

var faultKinds = []FaultKind{
	Unavailable, LoseRequest, LoseReply, Hang, ActLate, ServerError, CachedError,
	Refuse, InFlight, KeyIgnored, PruneKey, RejectLater, CrashBefore, CrashAfter,
}

// FaultKinds lists all faults there are.
func FaultKinds() []FaultKind { return slices.Clone(faultKinds) }

// Always as a [Fault]'s Count never ends.
const Always = -1

// maxCount keeps a mistyped count from meaning always.
const maxCount = 1_000_000

// A Fault makes the sandbox misbehave for the next Count requests of an action type
// that it applies to.
type Fault struct {
	Action string // action type
	Kind   FaultKind
	Count  int // from 1; or Always
}

// String gives the fault in the form that ParseFaults reads.
func (f Fault) String() string {
	count := "always"
	if f.Count != Always {
		count = strconv.Itoa(f.Count)
	}
	return f.Action + ":" + string(f.Kind) + ":" + count
}

var actions = []string{providers.EmailSend, providers.PaymentOrderCreate, providers.RefundCreate}

// ParseFaults reads a comma-separated list of ACTION:FAULT[:COUNT]. ACTION is an
// action type, with dots or with underscores; COUNT is 1 if left out, or "always".
// The same fault may stand in the list more than once: of the faults that apply to
// a request, the first with some count left is used. An empty list has no faults.
// The error is an *[OptionError] that names the part it is about.
func ParseFaults(list string) ([]Fault, error) {
	if strings.TrimSpace(list) == "" {
		return nil, nil
	}
	var faults []Fault
	for part := range strings.SplitSeq(list, ",") {
		f, err := parseFault(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		faults = append(faults, f)
	}
	return faults, nil
}

func parseFault(part string) (Fault, error) {
	fields := strings.Split(part, ":")
	if len(fields) < 2 || len(fields) > 3 {
		return Fault{}, faultError(part, "isn't ACTION:FAULT or ACTION:FAULT:COUNT")
	}
	f := Fault{Action: dotted(fields[0]), Kind: FaultKind(fields[1]), Count: 1}
	if len(fields) == 3 {
		count, err := parseCount(fields[2])
		if err != nil {
			return Fault{}, faultError(part, err.Error())
		}
		f.Count = count
	}
	if problem := f.problem(); problem != "" {
		return Fault{}, faultError(part, problem)
	}
	return f, nil
}

func parseCount(s string) (int, error) {
	if s == "always" {
		return Always, nil
	}
	count, err := strconv.Atoi(s)
	if err != nil || count < 1 || count > maxCount || strings.HasPrefix(s, "+") {
		return 0, fmt.Errorf("has a count that is neither a number from 1 to %d nor \"always\"", maxCount)
	}
	return count, nil
}

// dotted gives the action type for a tool's wire name; anything else stays as it is.
func dotted(name string) string {
	for _, action := range actions {
		if name == strings.ReplaceAll(action, ".", "_") {
			return action
		}
	}
	return name
}

func (f Fault) check() error {
	if problem := f.problem(); problem != "" {
		return faultError(f.String(), problem)
	}
	return nil
}

func (f Fault) problem() string {
	switch {
	case !slices.Contains(actions, f.Action):
		return "names an action that isn't one of " + strings.Join(actions, ", ")
	case !slices.Contains(faultKinds, f.Kind):
		return "names a fault that isn't one of " + joinKinds()
	case f.Count != Always && (f.Count < 1 || f.Count > maxCount):
		return fmt.Sprintf("has a count that isn't from 1 to %d", maxCount)
	}
	return ""
}

func joinKinds() string {
	names := make([]string, len(faultKinds))
	for i, kind := range faultKinds {
		names[i] = string(kind)
	}
	return strings.Join(names, ", ")
}

func faultError(part, problem string) error {
	return &OptionError{"--sandbox-faults", fmt.Sprintf("%q %s", part, problem)}
}
