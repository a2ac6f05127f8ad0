package console

// The chart's measures, in the units of its view box.
const (
	chartWidth  = 720
	chartHeight = 220
	plotLeft    = 44
	plotTop     = 12
	plotHeight  = 176
	barGap      = 6
)

// A chart is drawn as one stacked bar an hour.
type chart struct {
	Width, Height int
	Bars          []bar
	Lines         []gridLine
	Ticks         []tick
}

// A bar is one part of an hour's column. Its class gives its colour.
type bar struct {
	Class      string
	X, Y, W, H int
	Name       string
	Count      int
	Hour       hour
}

type gridLine struct {
	X1, X2, Y, LabelX, LabelY int
	Label                     string
}

type tick struct {
	X, Y  int
	Label string
}

// draw lays the columns out. Whatever happened is to be seen: a part has at least two units.
func draw(hours []hour) chart {
	c := chart{Width: chartWidth, Height: chartHeight}
	top := 1
	for _, h := range hours {
		top = max(top, h.total())
	}
	top = roundUp(top)
	for _, share := range []int{0, 1, 2} {
		y := plotTop + plotHeight - plotHeight*share/2
		c.Lines = append(c.Lines, gridLine{plotLeft, chartWidth, y, plotLeft - 8, y + 4, number(int64(top * share / 2))})
	}
	step := (chartWidth - plotLeft) / len(hours)
	for i, h := range hours {
		x, y := plotLeft+i*step+barGap/2, plotTop+plotHeight
		for _, part := range []struct {
			class, name string
			count       int
		}{{"succeeded", "succeeded", h.Succeeded}, {"failed", "did not happen", h.Failed}, {"open", "open", h.Open}, {"unknown", "unknown", h.Unknown}} {
			if part.count == 0 {
				continue
			}
			height := max(part.count*plotHeight/top, 2)
			y -= height
			c.Bars = append(c.Bars, bar{Class: part.class, X: x, Y: y, W: step - barGap, H: height, Name: part.name, Count: part.count, Hour: h})
		}
		if i%4 == 0 {
			c.Ticks = append(c.Ticks, tick{x + (step-barGap)/2, chartHeight - 10, h.At.Format("15:04")})
		}
	}
	return c
}

// roundUp is the next number that reads well on an axis, and so does its half.
func roundUp(n int) int {
	for unit := 1; ; unit *= 10 {
		for _, nice := range []int{2, 4, 6, 8, 10} {
			if nice*unit >= n {
				return nice * unit
			}
		}
	}
}
