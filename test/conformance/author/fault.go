package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/test/conformance/suite"
	"github.com/spectrumfs/spectrum/test/forge"
)

// A law gives a verdict.
type law string

const (
	resume  law = "02"
	memory  law = "03"
	strict  law = "05"
	restore law = "06"
)

// A fault is one thing that is wrong, and what every law says to it.
type fault struct {
	name string // in the names of cases
	says string // what is wrong, as a sentence without a full stop
	laws map[law]verdict

	// What it is done to, and what it needs in order to be a fault. Two faults
	// that touch the same cannot hold together. "A:b" is a part of "A".
	touches, needs []string

	signed   func(*run) // before the run is signed
	payload  func(*run) // before the payload is signed
	sealed   func(*run) // after that
	raw      func(*run) // bytes of artifacts, at the very end
	tree     func(*draft, *run)
	ordinary bool // it binds only a user without privileges
}

// A verdict is what a law says to a fault, and where in its order.
type verdict struct {
	at      place
	code    string
	details forge.Fields // demanded
	given   forge.Fields // if given, it must be this
	path    string       // the member of SPECTRUM-03 section 6.2
	phase   string       // of a restore
	noRun   bool         // the law does not say which run is at fault
	clause  string
}

// A place is a place in the order of a law. Until is the last part that it may
// stand in, where the law leaves that open.
type place struct {
	step, run, part int
	path            string
	sub             int
	until           int
	words           string
}

func (p place) compare(q place) int {
	return cmp.Or(
		cmp.Compare(p.step, q.step), cmp.Compare(p.run, q.run), cmp.Compare(p.part, q.part),
		strings.Compare(p.path, q.path), cmp.Compare(p.sub, q.sub))
}

// open reports whether the law leaves open which of two places comes first, the first of which
// begins first.
func open(p, q place) bool {
	if p.step != q.step || p.run != q.run {
		return false
	}
	return p.until > p.part && p.until >= q.part || p.compare(q) == 0
}

// applied is a fault of the run of this index.
type applied struct {
	fault fault
	run   int
}

func (a applied) verdict(l law) (verdict, bool) {
	v, ok := a.fault.laws[l]
	if !ok && l == memory {
		if v, ok = a.fault.laws[resume]; ok {
			v.at.step = memoryBundles
			v.path, _ = v.given["path"].(string)
		}
	}
	if _, rejected := a.fault.laws[strict]; !ok && l == restore && rejected {
		v, ok = gateFailed, true
	}
	v.at.run = a.run
	return v, ok
}

// verdicts are what a law says to all faults, first things first.
func (d *draft) verdicts(l law) []verdict {
	var all []verdict
	for _, a := range d.faults {
		if v, ok := a.verdict(l); ok {
			all = append(all, v)
		}
	}
	slices.SortStableFunc(all, func(a, b verdict) int { return a.at.compare(b.at) })
	return all
}

// decided reports whether the law says which verdict comes first.
func (d *draft) decided(l law) bool {
	all := d.verdicts(l)
	for i := 1; i < len(all); i++ {
		if open(all[0].at, all[i].at) && d.result(l, &all[0]) != d.result(l, &all[i]) {
			return false
		}
	}
	return true
}

// clash reports whether two faults cannot hold in the same run.
func clash(a, b fault) bool {
	for _, x := range a.touches {
		for _, y := range b.touches {
			if x == y || within(x, y) || within(y, x) {
				return true
			}
		}
	}
	return spoils(a, b) || spoils(b, a)
}

// spoils reports whether one fault takes away what another needs.
func spoils(a, b fault) bool {
	for _, x := range a.touches {
		for _, need := range b.needs {
			if x == need || within(need, x) {
				return true
			}
		}
	}
	return false
}

// within reports whether x is a part of y.
func within(x, y string) bool { return strings.HasPrefix(x, y+":") }

// result is the JSON of a verdict, or of acceptance.
func (d *draft) result(l law, v *verdict) string {
	fields := forge.Fields{"ok": false}
	switch {
	case l == restore && v == nil:
		fields = forge.Fields{"cause_code": nil, "code": nil, "ok": true, "phase": "VERIFY"}
	case l == restore:
		fields = forge.Fields{"cause_code": nil, "code": v.code, "ok": false, "phase": v.phase}
	case v == nil:
		fields = forge.Fields{"code": "OK", "details": forge.Fields{}, "ok": true}
		if l == strict {
			d.addRoots(fields)
		}
	default:
		fields["code"], fields["details"] = v.code, forge.Fields{}
		if l == strict && v.details != nil {
			fields["details"] = v.details
		}
		if (l == memory || l == strict && d.isChain()) && !v.noRun {
			fields["run_id"] = d.runs[v.at.run].id
		}
		if l == memory && v.path != "" {
			fields["path"] = v.path
		}
	}
	return string(forge.Canonical(fields))
}

func (d *draft) addRoots(fields forge.Fields) {
	if !d.isChain() {
		fields["bundle_root"] = d.runs[0].root
		return
	}
	fields["bundle_roots"], fields["chain_root"], fields["run_ids"] = d.roots(), d.chainRoot(), d.ids()
}

// command is a command by this law, and what it must answer.
func (d *draft) command(l law) suite.Command {
	if !d.decided(l) {
		panic(fmt.Sprintf("%s does not decide between %+v", l, d.verdicts(l)))
	}
	cmd := suite.Command{Args: d.args(l), Exit: 1}
	all := d.verdicts(l)
	if len(all) == 0 {
		cmd.Exit, cmd.Result = 0, d.result(l, nil)
		if l == resume || l == memory {
			cmd.Free = []string{"bundle_root", "bundle_roots", "chain_root", "run_ids"}
		}
		return cmd
	}
	v := all[0]
	cmd.Result = d.result(l, &v)
	if l == restore {
		return cmd
	}
	if v.noRun {
		cmd.Free = []string{"run_id"}
	}
	if given := d.given(l, v); len(given) > 0 {
		cmd.IfGiven = string(forge.Canonical(given))
	}
	return cmd
}

// given are members of details that are not demanded. Two faults whose verdicts
// are otherwise the same are not distinguished by them.
func (d *draft) given(l law, v verdict) forge.Fields {
	given := forge.Fields{}
	for name, value := range v.given {
		if l == strict && v.details[name] != nil {
			continue
		}
		given[name] = value
	}
	for _, other := range d.verdicts(l)[1:] {
		if open(v.at, other.at) {
			return nil
		}
	}
	return given
}

func (d *draft) args(l law) []string {
	var args []string
	switch l {
	case restore:
		args = append([]string{"restore"}, d.flags...)
	case strict:
		args = []string{"verify"}
		if len(d.runs) == 0 || len(d.runs) == 1 && d.isChain() {
			args = append(args, "--chain")
		}
	case resume:
		args = []string{"verify", "--law", "resume"}
	case memory:
		args = []string{"verify", "--law", "memory"}
	}
	args = append(args, d.outside...)
	for _, r := range d.runs {
		args = append(args, r.dir)
	}
	return args
}

// finish builds a case with these commands.
func (d *draft) finish(name, clauses string, text []string, laws ...law) suite.Case {
	d.build()
	c := suite.Case{Name: name, Text: text, Law: clauses, Ordinary: d.ordinary}
	accepted := false
	for _, l := range laws {
		cmd := d.command(l)
		c.Commands = append(c.Commands, cmd)
		accepted = accepted || l == restore && cmd.Exit == 0
	}
	c.Entries = d.entries(accepted)
	return c
}
