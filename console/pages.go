package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"time"
)

//go:embed templates/*.html
var templates embed.FS

//go:embed style.css
var style []byte

//go:embed icon.svg
var icon []byte

// pageNames are the pages, each a file of its name beside the layout and the parts.
var pageNames = []string{"login", "enter", "failure", "now", "operations", "operation", "limits", "outcomes"}

func parsePages() (map[string]*template.Template, error) {
	shared, err := template.New("layout.html").Funcs(functions).ParseFS(templates, "templates/layout.html", "templates/parts.html")
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	pages := make(map[string]*template.Template, len(pageNames))
	for _, name := range pageNames {
		page, err := shared.Clone()
		if err != nil {
			return nil, fmt.Errorf("console: %w", err)
		}
		files := []string{"templates/" + name + ".html"}
		if name == "operation" {
			files = append(files, "templates/decide.html", "templates/timeline.html")
		}
		if pages[name], err = page.ParseFS(templates, files...); err != nil {
			return nil, fmt.Errorf("console: %w", err)
		}
	}
	return pages, nil
}

// A view is what every page is made of.
type view struct {
	Title  string
	Page   string // its name: which link of the navigation is current
	Person *Person
	CSRF   string
	Now    time.Time
	Style  string // the style sheet's version
	Data   any
}

// render writes a page as a whole or not at all.
func (c *Console) render(w http.ResponseWriter, r *http.Request, s *session, status int, page string, v view) {
	v.Page, v.Now, v.Style = page, c.o.Now().UTC(), styleVersion
	if s != nil {
		v.Person, v.CSRF = &s.person, s.csrf()
	}
	var out bytes.Buffer
	if err := c.pages[page].Execute(&out, v); err != nil {
		c.o.Log.Error("the console can't show a page", "page", page, "error", err)
		http.Error(w, "this page can't be shown; the server's log says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(out.Bytes()) // a reader who has gone needs no page
	}
}

var styleVersion = version(style)

func version(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8])
}

// serveAsset lets browsers keep what its address names by version.
func serveAsset(kind string, content []byte) http.HandlerFunc {
	etag := version(content)
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("v") == etag {
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(content) // a reader who has gone needs no style
	}
}
