package compare_test

import (
	"fmt"
	"html"
	"strings"
)

// Where things stand in the chart, in pixels.
const (
	chartWidth  = 960
	labelsEnd   = 340
	barWidth    = 190
	barGap      = 14
	rowHeight   = 27
	barHeight   = 19
	chartTop    = 96
	sectionRoom = 34
	bottomRoom  = 18
)

// chartHead has the colours. The picture brings its own ground, so that it is readable whatever
// page it stands on; white on each of the bars' colours has a contrast above 4.5:1. The
// colours differ in lightness and each part has its number, for those who can't tell them
// apart.
const chartHead = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img" aria-labelledby="title text">
<title id="title">Three ways to name an action, under the same faults</title>
<desc id="text">%[3]s</desc>
<style>
text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328 }
.head { font-weight: 600 }
.part { font-size: 12px; fill: #ffffff; text-anchor: middle }
.ground { fill: #ffffff; stroke: #d1d9e0 }
.right { fill: #1d6fa5 }
.twice { fill: #b42318 }
.blocked { fill: #5f6672 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.ground { fill: #0d1117; stroke: #3d444d }
}
</style>
<rect class="ground" x="0.5" y="0.5" width="%[4]d" height="%[5]d" rx="6"/>
`

// chart draws results: a row for each scenario, a bar for each way.
func chart(r results) string {
	var b strings.Builder
	height := chartTop + len(scenarios)*rowHeight + sectionRoom + bottomRoom
	fmt.Fprintf(&b, chartHead, chartWidth, height, html.EscapeString(spoken(r)), chartWidth-1, height-1)
	caption(&b, 20, 34, "head", fmt.Sprintf("What %d runs of each come to, by the payment server's own journal", r[0][0].total()))
	legend(&b, 62)
	for i, w := range ways {
		caption(&b, column(i), 86, "head", w.name)
	}
	top := chartTop
	for row, s := range scenarios {
		if s.mistake && !scenarios[row-1].mistake {
			caption(&b, 20, top+sectionRoom-10, "head", "When the orchestrator gets the id wrong")
			top += sectionRoom
		}
		caption(&b, 20, top+barHeight-5, "", s.name)
		for i := range ways {
			bar(&b, column(i), top, r[row][i])
		}
		top += rowHeight
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func column(i int) int { return labelsEnd + i*(barWidth+barGap) }

func caption(b *strings.Builder, x, y int, class, text string) {
	if class != "" {
		class = fmt.Sprintf(` class="%s"`, class)
	}
	fmt.Fprintf(b, "<text%s x=\"%d\" y=\"%d\">%s</text>\n", class, x, y, html.EscapeString(text))
}

func legend(b *strings.Builder, y int) {
	x := 20
	for _, l := range []struct{ class, text string }{
		{"right", "right: each action once"}, {"twice", "twice: money went out again"}, {"blocked", "blocked: a real action never happened"},
	} {
		fmt.Fprintf(b, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"12\" height=\"12\"/>\n", l.class, x, y-11)
		caption(b, x+18, y, "", l.text)
		x += 60 + 7*len(l.text)
	}
}

// bar draws a tally's parts side by side.
func bar(b *strings.Builder, x, y int, t tally) {
	before := 0
	for _, p := range t.parts() {
		from, to := before*barWidth/t.total(), (before+p.n)*barWidth/t.total()
		before += p.n
		fmt.Fprintf(b, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", p.what, x+from, y, to-from, barHeight)
		if text := fitting(p, to-from); text != "" {
			fmt.Fprintf(b, "<text class=\"part\" x=\"%d\" y=\"%d\">%s</text>\n", x+(from+to)/2, y+barHeight-6, text)
		}
	}
}

// fitting is as much about a part as there is room for.
func fitting(p part, room int) string {
	text := fmt.Sprintf("%d %s", p.n, p.what)
	long := text
	if p.misled > 0 {
		long = fmt.Sprintf("%s, %d told %s", text, p.misled, p.as)
	}
	for _, t := range []string{long, text, fmt.Sprint(p.n)} {
		if room >= 8+7*len(t) || len(t) == 1 && room >= 9 {
			return t
		}
	}
	return ""
}

// spoken says what the chart shows to those who can't see it.
func spoken(r results) string {
	var lines []string
	for row, s := range scenarios {
		var cells []string
		for i, w := range ways {
			cells = append(cells, w.name+" "+r[row][i].String())
		}
		lines = append(lines, label(s)+": "+strings.Join(cells, "; "))
	}
	return strings.Join(lines, ". ") + "."
}
