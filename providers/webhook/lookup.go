package webhook

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// A lookup is a checked Lookup.
type lookup struct {
	method, path  string
	query, body   map[string]string
	absent        bool // what 404 means
	absentCode    string
	items, next   path // nil: one object; one page
	cursor        string
	provesAbsence bool
	lag           time.Duration
}

func newLookup(c Lookup, a *action) (*lookup, error) {
	if c.None {
		if c.Path != "" {
			return nil, fmt.Errorf("lookup is none, and has a path: keep one")
		}
		return nil, nil
	}
	if c.Path == "" {
		return nil, fmt.Errorf("lookup is missing: write how the gateway is asked what became of a key, or lookup: {none: true} if it can't be asked")
	}
	if err := checkPath("lookup.path", c.Path); err != nil {
		return nil, err
	}
	l := &lookup{
		method: orElse(c.Method, http.MethodGet), path: c.Path, query: c.Query, body: c.Body,
		absentCode: c.NotFoundCode, cursor: c.Cursor, provesAbsence: c.ProvesAbsence, lag: c.Lag,
	}
	asks := strings.Contains(c.Path, placeholder)
	for _, texts := range []map[string]string{c.Query, c.Body} {
		for _, v := range texts {
			asks = asks || strings.Contains(v, placeholder)
		}
	}
	for _, setting := range []struct {
		name, where string
		to          *path
	}{{"items", c.Items, &l.items}, {"next", c.Next, &l.next}} {
		if setting.where == "" {
			continue
		}
		at, err := parsePath(setting.where)
		if err != nil {
			return nil, fmt.Errorf("lookup.%s: %w", setting.name, err)
		}
		*setting.to = at
	}
	switch l.absent = c.NotFound == "absent"; {
	case l.method != http.MethodGet && l.method != http.MethodPost:
		return nil, fmt.Errorf("lookup.method is %q: write GET or POST", l.method)
	case l.method == http.MethodGet && len(c.Body) > 0:
		return nil, fmt.Errorf("lookup.body belongs to method: POST")
	case a.key.None:
		return nil, fmt.Errorf("lookup asks for a key, and key is none: nothing could be found by it; write lookup: {none: true}, or how the gateway takes the key (key.only_reference: true if it only stores it)")
	case !asks:
		return nil, fmt.Errorf("lookup asks for nothing of ours: put %s into its path, query or body", placeholder)
	case c.NotFound != "" && c.NotFound != "absent" && c.NotFound != "nothing":
		return nil, fmt.Errorf("lookup.not_found is %q: write absent or nothing", c.NotFound)
	case c.NotFoundCode != "" && !l.absent:
		return nil, fmt.Errorf("lookup.not_found_code goes with not_found: absent")
	case c.NotFoundCode != "" && a.answer.code == nil:
		return nil, fmt.Errorf("lookup.not_found_code is given, and answer.error isn't: write where the error code stands in an answer")
	case l.items != nil && a.answer.key == nil:
		return nil, fmt.Errorf("lookup.items is a list, and answer.key isn't given: write where an item shows the key, so that others' are told from ours")
	case (l.next == nil) != (c.Cursor == ""), l.next != nil && l.items == nil:
		return nil, fmt.Errorf("lookup.items, next and cursor go together: where the list is, where the next page's cursor stands, and which query parameter takes it")
	case c.ProvesAbsence && l.items == nil && l.absentCode == "":
		return nil, fmt.Errorf("lookup.proves_absence needs not_found: absent and not_found_code: a 404 that somebody else made must not be taken for the gateway's own")
	case c.Lag < 0:
		return nil, fmt.Errorf("lookup.lag is negative")
	}
	return l, nil
}
