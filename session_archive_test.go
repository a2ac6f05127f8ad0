package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// A session is a whole conversation, as testdata/sessions has it. Its files, in order:
//
//	flags           what the server is started with, beside its data directory
//	file NAME       a file in the data directory, which <dir> stands for
//	transports      on which it is held, if not on all three
//	call N TOOL     a call: {"meta": ..., "args": ..., "headers": ...}
//	until N TOOL    the same, made again and again until what is wanted is answered
//	raw N TOOL      a message as it stands, line breaks apart
//	want N          what the answer has; what isn't named may be anything
//	cli N           a command, run beside the server
//	exit N          its exit code; 0 if there is no such file
//	says N          what it prints among other things, one a line
//	effects         how often what was done in the outside world, in the end
//
// In what is wanted, <name1> stands for a value that is taken when it first comes and has
// to be the same later; <op1> is an operation's id and <time1> a time. <any> is whatever
// there is, and <absent> means that there is no such member. A member whose name ends in ~
// has to hold the text.
//
// In what is sent, a value that was taken may stand; "<2001 addresses>" is so many
// addresses; in raw messages <id> is the request's id, <era> what the protocol revision
// wants in _meta, and <byte ff> a byte.
type session struct {
	flags, transports []string
	files             map[string]string
	steps             []*step
	effects           map[string]int
}

type step struct {
	number, kind, tool string
	text               string
	want               map[string]any
	exit               int
	says               []string
}

func parseSession(archive *txtar.Archive) (*session, error) {
	s := &session{transports: []string{"stdio", "http", "sse"}, files: map[string]string{}}
	steps := map[string]*step{}
	for _, file := range archive.Files {
		words, text := strings.Fields(file.Name), string(file.Data)
		var number string
		if len(words) > 1 {
			number = words[1]
		}
		if known := steps[number]; known != nil {
			if err := known.expect(words[0], text); err != nil {
				return nil, fmt.Errorf("%s: %w", file.Name, err)
			}
			continue
		}
		switch {
		case file.Name == "flags":
			s.flags = strings.Fields(text)
		case len(words) == 2 && words[0] == "file":
			s.files[words[1]] = text
		case file.Name == "transports":
			s.transports = strings.Fields(text)
		case file.Name == "effects":
			if err := json.Unmarshal(file.Data, &s.effects); err != nil {
				return nil, fmt.Errorf("%s: %w", file.Name, err)
			}
		case len(words) == 3 && (words[0] == "call" || words[0] == "until" || words[0] == "raw"), len(words) == 2 && words[0] == "cli":
			made := &step{number: number, kind: words[0], text: text}
			if len(words) == 3 {
				made.tool = words[2]
			}
			steps[number] = made
			s.steps = append(s.steps, made)
		default:
			return nil, fmt.Errorf("%s: no such file in a session", file.Name)
		}
	}
	if s.effects == nil {
		return nil, fmt.Errorf("effects: they aren't counted")
	}
	for _, made := range s.steps {
		if made.kind != "cli" && len(made.want) == 0 {
			return nil, fmt.Errorf("%s %s: nothing is wanted of it", made.kind, made.number)
		}
	}
	return s, nil
}

// expect adds a file that says what comes of a step.
func (s *step) expect(kind, text string) (err error) {
	switch {
	case kind == "want" && s.kind != "cli":
		s.want, err = decodeObject([]byte(text))
	case kind == "exit" && s.kind == "cli":
		s.exit, err = strconv.Atoi(strings.TrimSpace(text))
	case kind == "says" && s.kind == "cli":
		s.says = strings.Split(strings.TrimSpace(text), "\n")
	default:
		err = fmt.Errorf("a second step with this number")
	}
	return err
}

func decodeObject(text []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var object map[string]any
	err := decoder.Decode(&object)
	return object, err
}

// taken are the values that placeholders stand for.
type taken map[string]string

var (
	placeholder     = regexp.MustCompile(`^<([a-z]+)[0-9]*>$`)
	addressCount    = regexp.MustCompile(`"<([0-9]+) addresses>"`)
	operationIDForm = regexp.MustCompile(`^op_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	writtenByte     = regexp.MustCompile(`<byte ([0-9a-f]{2})>`)
)

// fill puts values for placeholders into what is sent.
func (b taken) fill(text string) string {
	for name, value := range b {
		text = strings.ReplaceAll(text, name, value)
	}
	return addressCount.ReplaceAllStringFunc(text, func(match string) string {
		count, _ := strconv.Atoi(addressCount.FindStringSubmatch(match)[1])
		addresses := make([]string, count)
		for i := range addresses {
			addresses[i] = strconv.Quote(fmt.Sprintf("reader%d@example.com", i))
		}
		return "[" + strings.Join(addresses, ",") + "]"
	})
}

// raw makes the message of a raw step.
func (b taken) raw(text string, id int64, e era) []byte {
	members := ""
	if e == statelessEra {
		text, _ := json.Marshal(e.meta())
		members = strings.Trim(string(text), "{")
		members = strings.TrimSuffix(members, "}") + ","
	}
	text = strings.ReplaceAll(strings.TrimSpace(b.fill(text)), "\n", " ")
	text = strings.NewReplacer("<id>", strconv.FormatInt(id, 10), "<era>", members).Replace(text)
	return []byte(writtenByte.ReplaceAllStringFunc(text, func(match string) string {
		value, _ := strconv.ParseUint(writtenByte.FindStringSubmatch(match)[1], 16, 8)
		return string([]byte{byte(value)})
	}))
}

// compare returns what is wanted and what was got, with all that is right made equal, so
// that a diff of both shows the rest.
func (b taken) compare(want, got any) (any, any) {
	switch want := want.(type) {
	case map[string]any:
		gotObject, ok := got.(map[string]any)
		if !ok {
			return want, got
		}
		return b.compareObjects(want, gotObject)
	case []any:
		gotList, ok := got.([]any)
		if !ok || len(gotList) != len(want) {
			return want, got
		}
		wants, gots := make([]any, len(want)), make([]any, len(want))
		for i := range want {
			wants[i], gots[i] = b.compare(want[i], gotList[i])
		}
		return wants, gots
	case string:
		if placeholder.MatchString(want) {
			return b.take(want, got), got
		}
	}
	return want, got
}

func (b taken) compareObjects(want, got map[string]any) (any, any) {
	wants, gots := map[string]any{}, map[string]any{}
	for name, wanted := range want {
		if plain, ok := strings.CutSuffix(name, "~"); ok {
			gots[name] = got[plain]
			wants[name] = wanted
			if strings.Contains(fmt.Sprint(got[plain]), b.fill(fmt.Sprint(wanted))) {
				wants[name] = got[plain]
			}
			continue
		}
		value, present := got[name]
		if wanted == "<absent>" {
			if present {
				gots[name] = value
			}
			continue
		}
		if !present {
			wants[name] = wanted
			continue
		}
		wants[name], gots[name] = b.compare(wanted, value)
	}
	return wants, gots
}

// take returns the value that a placeholder stands for, which is what comes first if
// that is of its kind.
func (b taken) take(name string, got any) any {
	if value, ok := b[name]; ok {
		return value
	}
	kind := placeholder.FindStringSubmatch(name)[1]
	if kind == "any" {
		return got
	}
	text, ok := got.(string)
	if !ok || text == "" {
		return name
	}
	switch kind {
	case "op":
		ok = operationIDForm.MatchString(text)
	case "time":
		_, err := time.Parse(time.RFC3339, text)
		ok = err == nil
	}
	if !ok {
		return name
	}
	b[name] = text
	return text
}

func (b taken) clone() taken { return maps.Clone(b) }
