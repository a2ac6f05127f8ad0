package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Whatever is kept of an operation is in the digest: no field can come over changed unseen.
func TestTheDigestHasEveryField(t *testing.T) {
	t.Parallel()
	var seen int
	digest := func(r Record) string {
		var all tally
		all.record(&r)
		return all.contents().Digest
	}
	for _, part := range []func(*Record) reflect.Value{
		func(r *Record) reflect.Value { return reflect.ValueOf(&r.Operation).Elem() },
		func(r *Record) reflect.Value { return reflect.ValueOf(&r.History[0]).Elem() },
	} {
		fresh := func() Record { return Record{History: []Transition{{}}} }
		plain, probe := digest(fresh()), fresh()
		leaves(part(&probe), nil, func(path []int) {
			seen++
			changed := fresh()
			v := part(&changed)
			name := v.Type().Name()
			for _, i := range path {
				name += "." + v.Type().Field(i).Name
				v = v.Field(i)
			}
			set(t, v)
			if digest(changed) == plain || changed.differsIn(new(fresh())) == "" {
				t.Errorf("%s isn't in the digest", name)
			}
		})
	}
	if seen < 60 {
		t.Errorf("only %d fields were looked at", seen)
	}
	if digest(Record{}) == digest(Record{Sealed: []byte{}}) || digest(Record{Sealed: []byte{}}) == digest(Record{Sealed: []byte{1}}) {
		t.Error("the payload isn't in the digest")
	}
}

// leaves visits the fields of a struct, and of those in it.
func leaves(v reflect.Value, path []int, visit func([]int)) {
	for i := range v.NumField() {
		at := append(append([]int{}, path...), i)
		if f := v.Field(i); f.Kind() == reflect.Struct && f.Type() != reflect.TypeFor[time.Time]() {
			leaves(f, at, visit)
		} else {
			visit(at)
		}
	}
}

// set gives a field another value than its zero.
func set(t *testing.T, v reflect.Value) {
	t.Helper()
	switch x := v.Addr().Interface().(type) {
	case *time.Time:
		*x = time.UnixMicro(1)
	case *json.RawMessage:
		*x = json.RawMessage("1")
	case *FieldHashes:
		*x = FieldHashes{"a": {}}
	default:
		switch v.Kind() {
		case reflect.String:
			v.SetString("x")
		case reflect.Int, reflect.Int64:
			v.SetInt(1)
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Array:
			v.Index(v.Len() - 1).SetUint(1)
		default:
			t.Fatalf("a field is a %s", v.Type())
		}
	}
}

// A shelf is an archive in memory, and a target that can be told to fail.
type shelf struct {
	records []Record
	facts   map[string][]byte
	usage   map[string]int64

	held      bool
	wasHeld   bool
	appends   int
	failAfter int // appends; 0: never
	loses     bool
}

var errTorn = errors.New("torn off")

func (s *shelf) Records(_ context.Context, after string, limit int) ([]Record, error) {
	from := 0
	for i, r := range s.records {
		if r.Operation.ID == after {
			from = i + 1
		}
	}
	return append([]Record(nil), s.records[from:min(from+limit, len(s.records))]...), nil
}

func (s *shelf) Facts(context.Context) (map[string][]byte, error) {
	facts := map[string][]byte{}
	for name, value := range s.facts {
		facts[name] = value
	}
	return facts, nil
}

func (s *shelf) AllUsage(context.Context) (map[string]int64, error) { return s.usage, nil }

func (s *shelf) Hold(_ context.Context, operations int, _ int64, facts map[string][]byte) error {
	if operations != len(s.records) {
		return &CopyError{What: "not so many"}
	}
	s.held, s.wasHeld = true, true
	if s.facts == nil {
		s.facts = map[string][]byte{}
	}
	for name, value := range facts {
		s.facts[name] = value
	}
	return nil
}

func (s *shelf) Append(_ context.Context, records []Record) error {
	if s.appends++; s.failAfter > 0 && s.appends > s.failAfter {
		return errTorn
	}
	if s.loses {
		records = records[1:]
	}
	s.records = append(s.records, records...)
	return nil
}

func (s *shelf) Take(_ context.Context, usage map[string]int64) error {
	s.usage = usage
	return nil
}

func (s *shelf) Release(context.Context) error {
	s.held = false
	return nil
}

func record(i int) Record {
	op := Operation{ID: fmt.Sprintf("op_%04d", i), Key: Key{1, byte(i)}, Action: "refund", Status: FailedFinal, ErrorCode: "x", Moves: 1}
	return Record{Operation: op, History: []Transition{{Seq: 1, To: FailedFinal}}}
}

func fullShelf(n int) *shelf {
	s := &shelf{facts: map[string][]byte{secretCheck: []byte("check"), "checkpoint:1": []byte("{}")}, usage: map[string]int64{"a": 3}}
	for i := range n {
		s.records = append(s.records, record(i))
	}
	return s
}

func TestCopyGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	source, target := fullShelf(25), &shelf{failAfter: 2}
	c := &Copy{From: source, To: target, Batch: 4}
	report, err := c.Run(t.Context())
	if !errors.Is(err, errTorn) || report.Copied != 8 || !target.held || len(target.usage) > 0 {
		t.Fatalf("torn off: %d copied, %v, held %v, usage %v; want 8, the error, held, none", report.Copied, err, target.held, target.usage)
	}
	target.failAfter = 0
	report, err = c.Run(t.Context())
	if err != nil || report.Copied != 17 || target.held || report.Source != report.Target || report.Source.Operations != 25 {
		t.Errorf("again: %+v, %v, held %v; want 17 more, equal, and released", report, err, target.held)
	}
	if diff := cmp.Diff(source.records, target.records); diff != "" {
		t.Errorf("records (-source +target):\n%s", diff)
	}
	target.wasHeld = false
	report, err = c.Run(t.Context())
	if err != nil || report.Copied != 0 || target.wasHeld {
		t.Errorf("once more: %d copied, %v, held %v; want nothing to do", report.Copied, err, target.wasHeld)
	}
}

func TestWhatDiffersIsNamedAndNothingChanged(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spoil func(source, target *shelf)
		want  string
	}{
		"a changed state":             {func(_, to *shelf) { to.records[3].Operation.Conflicts = 9 }, "op_0003: the target has this operation with another state"},
		"a further move":              {func(_, to *shelf) { to.records[3].Operation.Moves = 2 }, "op_0003: the target has this operation with another number of moves (1 in the source, 2 in the target)"},
		"a changed line":              {func(_, to *shelf) { to.records[3].History = []Transition{{Seq: 1, To: Unknown}} }, "op_0003: the target has this operation with another history"},
		"a payload more":              {func(_, to *shelf) { to.records[3].Sealed = []byte{} }, "op_0003: the target has this operation with another sealed payload"},
		"an operation of its own":     {func(_, to *shelf) { to.records = append(to.records, record(99)) }, "op_0099: the target has this operation, and the source doesn't"},
		"an operation in between":     {func(from, _ *shelf) { from.records = append(from.records[:2:2], from.records[3:]...) }, "op_0002: the target has this operation, and the source doesn't"},
		"another secret":              {func(_, to *shelf) { to.facts[secretCheck] = []byte("other") }, "another secret"},
		"a checkpoint of its own":     {func(_, to *shelf) { to.facts["checkpoint:2"] = []byte("{}") }, "checkpoint:2: the source doesn't have it"},
		"another checkpoint":          {func(_, to *shelf) { to.facts["checkpoint:1"] = []byte("{1}") }, "checkpoint:1: the source doesn't have it"},
		"another usage":               {func(_, to *shelf) { to.usage = map[string]int64{"a": 4} }, "limit a: 3 is taken of it in the source and 4 in the target"},
		"a limit of its own":          {func(_, to *shelf) { to.usage = map[string]int64{"a": 3, "b": 0} }, "limit b: 0 is taken of it in the source and 0 in the target"},
		"a source that isn't one yet": {func(from, _ *shelf) { from.facts = nil }, "nothing to copy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source, target := fullShelf(9), fullShelf(6)
			test.spoil(source, target)
			before := append([]Record(nil), target.records...)
			_, err := (&Copy{From: source, To: target, Batch: 2}).Run(t.Context())
			if _, ok := errors.AsType[*CopyError](err); !ok || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if diff := cmp.Diff(before, target.records); diff != "" || target.wasHeld {
				t.Errorf("held %v, and the target changed (-before +after):\n%s", target.wasHeld, diff)
			}
		})
	}
}

// What was lost on the way is noticed by what the target reads back, and the target stays held.
func TestALossIsNoticed(t *testing.T) {
	t.Parallel()
	target := &shelf{loses: true}
	report, err := (&Copy{From: fullShelf(5), To: target}).Run(t.Context())
	if _, ok := errors.AsType[*CopyError](err); !ok || report.Source.Operations != 5 || report.Target.Operations != 4 || !target.held {
		t.Errorf("%v, %+v, held %v; want a CopyError, 5 and 4 operations, held", err, report, target.held)
	}
}

func TestDamagedSourcesAreRefused(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(*Record){
		"a line is missing":          func(r *Record) { r.History = nil },
		"open without payload":       func(r *Record) { r.Operation.Status = Planned },
		"final with payload":         func(r *Record) { r.Sealed = []byte{} },
		"a failure without code":     func(r *Record) { r.Operation.ErrorCode = "" },
		"success without evidence":   func(r *Record) { r.Operation.Status = Succeeded },
		"no status":                  func(r *Record) { r.Operation.Status = "done" },
		"an open tombstone":          func(r *Record) { r.Operation.Pruned, r.Operation.Status = true, Unknown },
		"a tombstone with all of it": func(r *Record) { r.Operation.Pruned = true },
	} {
		source, target := fullShelf(3), &shelf{}
		damage(&source.records[1])
		_, err := (&Copy{From: source, To: target}).Run(t.Context())
		if e, ok := errors.AsType[*CopyError](err); !ok || e.Where != "op_0001" || len(target.records) != 0 {
			t.Errorf("%s: %v, %d copied; want op_0001 named and none", name, err, len(target.records))
		}
	}
}
