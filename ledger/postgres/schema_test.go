package postgres

import (
	"strings"
	"testing"
)

func TestServersThatCanNotKeepALedger(t *testing.T) {
	t.Parallel()
	public := "public"
	for name, test := range map[string]struct {
		number         int
		name, encoding string
		schema         *string
		want           string
	}{
		"too old":           {120022, "12.22 (Debian 12.22-1)", "UTF8", &public, "is PostgreSQL 12.22 (Debian 12.22-1); version 13 or newer"},
		"just new enough":   {130000, "13.0", "UTF8", &public, ""},
		"another encoding":  {150018, "15.18", "SQL_ASCII", &public, "encoding SQL_ASCII"},
		"without a schema":  {150018, "15.18", "UTF8", nil, "no schema"},
		"newer than tested": {190000, "19.0", "UTF8", &public, ""},
	} {
		err := checkServer(test.number, test.name, test.encoding, test.schema)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
