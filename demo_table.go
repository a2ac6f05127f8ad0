package main

import "fmt"

// table shows calls against effects, and the ledger's count of business actions.
func (n *narrator) table(tallies []tally, actions int) {
	fmt.Fprintf(n.w, "\n%s\n", n.paint(styleBold, fmt.Sprintf("   %-40s  %5s  %7s", "", "CALLS", "EFFECTS")))
	calls, effects := 0, 0
	for i, t := range tallies {
		calls, effects = calls+t.calls, effects+t.effects
		looks, remark := styleGreen, ""
		if !t.ok() {
			looks, remark = styleRed, "  not as promised"
		}
		fmt.Fprintln(n.w, n.paint(looks, fmt.Sprintf("%d  %-40s  %5d  %7d%s", i+1, t.title, t.calls, t.effects, remark)))
	}
	fmt.Fprintf(n.w, "\n%s\n", n.paint(styleBold, fmt.Sprintf("%s, %s, %s",
		countOf(calls, "call"), countOf(effects, "effect"), countOf(actions, "business action"))))
}

// closing is the end of a demo that went as promised.
func (n *narrator) closing(dir string) {
	fmt.Fprintln(n.w, n.paint(styleGreen, "Every business action had exactly one effect."))
	if dir == "" {
		fmt.Fprintln(n.w, "\nTo keep the ledger and look around in it: onceward demo --data-dir DIR")
		return
	}
	dir = shellQuoted(dir)
	fmt.Fprintf(n.w, "\nLook around in what is kept:\n  onceward operations list --data-dir %s\n  onceward sandbox effects --data-dir %s\n", dir, dir)
}
