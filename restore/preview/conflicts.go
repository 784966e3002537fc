package preview

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/trust"
	"github.com/spectrumfs/spectrum/verify"
)

// conflictsOf collects the conflicts: first those of the whole candidate, then those of items, in path
// order.
func (d *deciding) conflictsOf() {
	d.conflicts = slices.Concat(
		d.authority(),
		d.foreign(),
		d.laws(),
		d.scopes(),
		d.identity(),
		d.staleness(),
		d.places(),
		d.targets(),
		d.divergences(),
		d.secrets(),
	)
	for n := range d.conflicts {
		c := &d.conflicts[n]
		c.ID, c.Decision, c.Items = ConflictID(n+1), Undecided, []string{}
		for _, number := range c.Numbers {
			c.Items = append(c.Items, ItemID(number))
		}
		if c.Diverged {
			c.Resolution = c.resolution()
		}
	}
}

// ConflictID returns the ID of a conflict.
func ConflictID(number int) string { return fmt.Sprintf("C-%03d", number) }

// ThenTrust ends a resolution of a conflict about a validator. A summary has the whole command instead.
const ThenTrust = ", then spectrum trust add it"

// authority lists the validators without a decision: one conflict each, in the order of the
// chain.
func (d *deciding) authority() []Conflict {
	var conflicts []Conflict
	known := map[string]bool{}
	for run := range d.plan.Runs() {
		id := run.Bundle().ValidatorID()
		if d.request.Trust.Of(id) != trust.Unknown || known[id] {
			continue
		}
		known[id] = true
		conflicts = append(conflicts, Conflict{
			Type:       AuthorityConflict,
			Path:       id,
			Current:    "no validator is pinned",
			Claim:      "this validator has accepted the candidate",
			Authority:  "a valid signature identifies the signer; it does not mean that the operator trusts it",
			Risk:       "anyone with any key can make a candidate that verifies",
			Resolution: "compare this validator_id with the one you expect" + ThenTrust,
		})
	}
	return conflicts
}

// foreign lists the names on the way to the restore root, and that of the root itself, that other users can
// rename or replace: one conflict for each user or group, with all its names in the order of the way. Path
// is the first of them.
func (d *deciding) foreign() []Conflict {
	var conflicts []Conflict
	by := map[string]int{}
	for _, l := range d.found.way.Loose {
		place := Place{valid(l.Path), ParentPlace, l.By, l.Owner, modeText(l.Perm)}
		if at, known := by[l.By]; known {
			conflicts[at].Current += "; " + l.String()
			conflicts[at].Places = append(conflicts[at].Places, place)
			continue
		}
		by[l.By] = len(conflicts)
		conflicts = append(conflicts, Conflict{
			Type:       AuthorityConflict,
			Path:       place.Path, // Current has it in full
			Places:     []Place{place},
			Current:    l.String(),
			Claim:      fmt.Sprintf("the restore would go to %q, which belongs to user %d", d.found.way.Real, d.found.root.UID),
			Authority:  "an approval is for one directory, and another user can replace that directory",
			Risk:       "restored files can be moved away, and later restores, rollbacks or recoveries here can hit another directory",
			Resolution: "choose a restore root that only root and you can rename; or check who that user is, and acknowledge this conflict by its number in the statement",
			ByName:     true,
		})
	}
	return conflicts
}

// laws lists the violations of SPECTRUM-02 and SPECTRUM-03 in a candidate that SPECTRUM-05 accepts.
func (d *deciding) laws() []Conflict {
	var bundles []*verify.Bundle
	names := map[string]string{}
	dated := map[string]bool{}
	for run := range d.plan.Runs() {
		bundles = append(bundles, run.Bundle())
		names[run.Bundle().RunID()] = RunText(run.Bundle())
		dated[run.Bundle().RunID()] = !run.Bundle().Completed().IsZero()
	}
	var conflicts []Conflict
	for _, found := range verify.Findings(bundles) {
		c := Conflict{Path: found.RunID, Claim: names[found.RunID] + ": " + found.Message}
		switch found.Code {
		case verify.ChainOrderViolation:
			c.Type = TimingConflict
			c.Current = "a chain's runs were completed one after the other"
			c.Authority = "SPECTRUM-03 decides on order: " + string(found.Code)
			c.Risk = "a later state may be replaced by an earlier one"
			c.Resolution = "find out the order in which the runs were made, and name them in that order"
			if !dated[found.RunID] {
				c.Current = "a run has a completion date"
				c.Resolution = "have the run sealed again with a date that can be read, or acknowledge that its date is not known"
			}
		case verify.InvalidChainReference:
			c.Type = SourceConflict
			c.Current = "an input is an output of the same run or of an earlier one"
			c.Authority = "SPECTRUM-03 decides on references: " + string(found.Code)
			c.Risk = "the run has inputs that are not part of the candidate"
			c.Resolution = "restore the chain that the input comes from, or acknowledge that it is not known"
		default:
			c.Type = VersionConflict
			c.Current = "validators of the versions 1.0.0, 1.0.1 and 1.1.0 are supported"
			c.Authority = "SPECTRUM-02 decides on validators: " + string(found.Code)
			c.Risk = "the bundle may follow rules that are not known here"
			c.Resolution = "ask for a run sealed by a supported validator"
		}
		conflicts = append(conflicts, c)
	}
	return conflicts
}

// scopes lists the requested scopes that have no item. The default ones do not
// count as requested.
func (d *deciding) scopes() []Conflict {
	var conflicts []Conflict
	for _, asked := range d.request.Asked.Scopes {
		if slices.ContainsFunc(d.items, func(i Item) bool { return i.Scope == asked }) {
			continue
		}
		conflicts = append(conflicts, Conflict{
			Type:       ScopeConflict,
			Path:       string(asked),
			Current:    "the operator requested this scope",
			Claim:      "no output of the candidate is in this scope",
			Authority:  "the operator requests scopes, and the signer declares them",
			Risk:       "requested items are not restored",
			Resolution: "check constraints.restore_scopes in the candidate's TASK_SPEC.json, or preview again without this scope",
		})
	}
	return conflicts
}

// identity reports, once for each run, an identity layer of another agent. One that was not
// requested blocks nothing.
func (d *deciding) identity() []Conflict {
	if !slices.Contains(d.request.Asked.Scopes, scope.SameAgentIdentityLayer) {
		return nil
	}
	var conflicts []Conflict
	for n, run := range d.runs {
		items := d.ofRun(n, func(i *Item) bool { return i.Label == Nontransferable })
		if len(items) == 0 {
			continue
		}
		conflicts = append(conflicts, Conflict{
			Type:       IdentityConflict,
			Path:       run,
			Current:    "the operator's agent is " + agentText(d.request.Asked.Agent, "not named"),
			Claim:      "the identity layer is that of " + agentText(d.claims[n].text["agent_id"], "an agent that is not named"),
			Authority:  "an identity layer is restored for the same agent only (protocol section 6)",
			Risk:       "one agent would take over the role of another",
			Resolution: "leave it out, as proposed; items of another agent are absorbed, not restored (protocol section 6)",
		})
	}
	return conflicts
}

func agentText(agent, unnamed string) string {
	if agent == "" {
		return unnamed
	}
	return strconv.Quote(agent)
}

// staleness reports that the active savepoint is of a later candidate, or may be, and that a
// candidate is dated in the future.
func (d *deciding) staleness() []Conflict {
	completed, _ := completedOf(d.plan)
	var conflicts []Conflict
	if d.future {
		conflicts = append(conflicts, Conflict{
			Type:       TimingConflict,
			Path:       SourceID(d.plan),
			Current:    "that time is in the future",
			Claim:      "this candidate was completed in the future, at " + timeText(completed),
			Authority:  "the clock of this machine takes precedence over the signer's time",
			Risk:       "the date does not show whether the candidate is older than the current state",
			Resolution: "find out which clock is wrong; have the run sealed again, or acknowledge that its date is unknown",
		})
	}
	if d.unsure {
		conflicts = append(conflicts, Conflict{
			Type:       StaleContext,
			Path:       d.request.Current.ID,
			Current:    "the active savepoint is of a candidate that was completed at " + knownTime(d.request.Current.Completed),
			Claim:      "this candidate was completed at " + dateText(d.plan),
			Authority:  "current state outranks the restore candidate",
			Risk:       "it is unknown whether this is older: later decisions may be reverted",
			Resolution: "restore a candidate with a date, or acknowledge that this state is wanted",
		})
	}
	if !d.stale {
		return conflicts
	}
	return append(conflicts, Conflict{
		Type:       StaleContext,
		Path:       d.request.Current.ID,
		Current:    "the active savepoint is of a candidate that was completed at " + timeText(d.request.Current.Completed),
		Claim:      "this candidate was completed at " + timeText(completed),
		Authority:  "current state outranks the restore candidate",
		Risk:       "later decisions would be reverted",
		Resolution: "restore a later candidate, or acknowledge that an earlier state is wanted",
	})
}

// completedOf returns the signed completion time of the latest run of a candidate, and the number of runs
// without a readable date.
func completedOf(p *restore.Plan) (latest time.Time, undated int) {
	for run := range p.Runs() {
		t := run.Bundle().Completed()
		if t.IsZero() {
			undated++
		}
		if t.After(latest) {
			latest = t
		}
	}
	return latest, undated
}

// dateText returns the date of a candidate in words.
func dateText(p *restore.Plan) string {
	latest, undated := completedOf(p)
	if latest.IsZero() || undated == 0 {
		return knownTime(latest)
	}
	return fmt.Sprintf("%s, and %s without a date", timeText(latest), visible.Count(undated, "run"))
}

func knownTime(t time.Time) string {
	if t.IsZero() {
		return Unknown
	}
	return timeText(t)
}

// targets lists the entries where proposed items would go, and the result
// artifacts.
func (d *deciding) targets() []Conflict {
	byPath := map[string]int{}
	for n := range d.items {
		if d.lists[n] == proposed {
			byPath[d.items[n].Path] = n + 1
		}
	}
	var conflicts []Conflict
	for _, found := range d.restore.Conflicts() {
		number, isItem := byPath[found.Path]
		if !isItem && !restore.IsResult(found.Path) {
			continue
		}
		c := Conflict{
			Type:       StateConflict,
			Path:       found.Path,
			Current:    found.State,
			Claim:      "the restore would create this path",
			Authority:  "current state outranks the restore candidate",
			Risk:       "a restore never overwrites: the commit will be rejected with " + string(found.Failure().Code),
			Resolution: "move the existing entry away, then preview again",
		}
		if d.isReplaceable(found) {
			c.Resolution = "preview again with --replace, which replaces the file; or move it away, then preview again"
			if !isItem {
				c.Resolution = "preview again with --replace, which displaces it if your last commit here made it; or move it away, then preview again"
			}
		}
		if found.Linked != "" {
			c.Resolution = "copy it and move the copy to its name, which makes it a file of its own, or leave one of the two out; then preview again"
		}
		if d.restore.Replaces() {
			c.Risk = "it is not replaced: the commit will be rejected with " + string(found.Failure().Code)
		}
		if found.Failure().Code == restore.FinalizeFailed {
			c.Risk = "a restore moves files into place, which works within one file system only: the commit will be rejected with " + string(restore.FinalizeFailed)
			c.Resolution = "unmount it, or put a directory in the place of the subvolume, then preview again; or leave these items out, and restore them with a restore root that is in it"
		}
		if isItem && d.items[number-1].Removed {
			c.Claim = "the change set removes this path"
			c.Risk = "it is not removed: the commit will be rejected with " + string(found.Failure().Code)
		}
		if isItem {
			c.Numbers = []int{number}
			if d.items[number-1].Class == Identical {
				c.Current += ", the same byte for byte"
				c.Resolution = "leave " + ItemID(number) + " out: the file is already identical; or preview again with --replace, which keeps it"
			}
		}
		conflicts = append(conflicts, c)
	}
	return conflicts
}

// isReplaceable reports whether a preview with --replace may find no conflict where this one does:
// a regular file is there.
func (d *deciding) isReplaceable(found restore.Conflict) bool {
	if d.restore.Replaces() || found.Failure().Code == restore.FinalizeFailed {
		return false
	}
	path, err := pathsafe.Parse(found.Path)
	if err != nil {
		return false
	}
	st, err := restore.Standing(d.restore.Root(), path)
	return err == nil && st.Mode.IsRegular()
}

// secrets lists the restricted items that are proposed.
func (d *deciding) secrets() []Conflict {
	var conflicts []Conflict
	for n := range d.items {
		i := &d.items[n]
		if !d.mayHoldSecret(i) {
			continue
		}
		c := Conflict{
			Type:       PrivacyConflict,
			Path:       i.Path,
			Numbers:    []int{i.Number},
			Current:    "restricted context is restored only if the operator requests it",
			Claim:      orElse(i.Reason, "the signer declares it restricted_context"),
			Authority:  "the operator's approval is needed (protocol section 5)",
			Risk:       "users who can read the restore root can read a secret",
			Resolution: "leave it out, or check who can read " + strconv.Quote(d.request.Origin.RestoreRoot),
		}
		if found, ok := d.request.Privacy.Match(i.path); ok && found.Operator {
			c.Type = PreferenceConflict
			c.Authority = "it is on the operator's own list of restricted names"
		}
		conflicts = append(conflicts, c)
	}
	return conflicts
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// ofRun returns the numbers of the items of one run that fit. The items of a run are adjacent, in the order
// of the runs.
func (d *deciding) ofRun(run int, fits func(*Item) bool) []int {
	from, _ := slices.BinarySearchFunc(d.items, run, func(i Item, run int) int { return i.run - run })
	var numbers []int
	for n := from; n < len(d.items) && d.items[n].run == run; n++ {
		if fits(&d.items[n]) {
			numbers = append(numbers, n+1)
		}
	}
	return numbers
}

// numbers returns the numbers of the items that fit.
func (d *deciding) numbers(fits func(*Item) bool) []int {
	var numbers []int
	for n := range d.items {
		if fits(&d.items[n]) {
			numbers = append(numbers, n+1)
		}
	}
	return numbers
}
