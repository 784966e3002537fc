package preview

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/trust"
	"github.com/spectrumfs/spectrum/verify"
)

// conflictsOf finds the conflicts: first those of the whole candidate, then those
// of items, in path order.
func (d *deciding) conflictsOf() {
	d.conflicts = slices.Concat(
		d.authority(),
		d.foreign(),
		d.laws(),
		d.scopes(),
		d.identity(),
		d.staleness(),
		d.targets(),
		d.divergences(),
		d.secrets(),
	)
	for n := range d.conflicts {
		c := &d.conflicts[n]
		c.ID, c.Decision, c.Items = conflictID(n+1), pending, []string{}
		for _, number := range c.items {
			c.Items = append(c.Items, itemID(number))
		}
		if c.diverged {
			c.Resolution = c.resolution()
		}
	}
}

func conflictID(number int) string { return fmt.Sprintf("C-%03d", number) }

// thenTrust ends a resolution where the item is the validator. A summary has the whole command instead.
const thenTrust = ", then spectrum trust add it"

// authority lists the validators without a decision: one conflict each, in the order of the
// chain.
func (d *deciding) authority() []conflict {
	var conflicts []conflict
	known := map[string]bool{}
	for run := range d.plan.Runs() {
		id := run.Bundle().ValidatorID()
		if d.request.Trust.Of(id) != trust.Unknown || known[id] {
			continue
		}
		known[id] = true
		conflicts = append(conflicts, conflict{
			Type:       authorityConflict,
			Path:       id,
			Current:    "no validator is pinned",
			Claim:      "this validator has accepted the candidate",
			Authority:  "a valid signature says who signed, and not that the operator trusts him",
			Risk:       "whoever has any key can make a candidate that verifies",
			Resolution: "compare this validator_id with the one you expect" + thenTrust,
		})
	}
	return conflicts
}

// foreign lists what other users can rename on the way to the restore root, the root
// itself included, in the order in which the way passes them: one conflict for each user or
// group, with all the names that he can rename. Path is the first of them.
func (d *deciding) foreign() []conflict {
	var conflicts []conflict
	by := map[string]int{}
	for _, l := range d.found.way.Loose {
		if at, known := by[l.By]; known {
			conflicts[at].Current += "; " + l.String()
			continue
		}
		by[l.By] = len(conflicts)
		conflicts = append(conflicts, conflict{
			Type:       authorityConflict,
			Path:       strings.ToValidUTF8(l.Path, "\uFFFD"), // Current has it in full
			Current:    l.String(),
			Claim:      fmt.Sprintf("the restore would go to %q, which belongs to user %d", d.found.way.Real, d.found.root.UID),
			Authority:  "an approval is for one directory, and another user can put a different one in its place",
			Risk:       "what is restored can be moved away, and what is restored, rolled back or recovered here later can be elsewhere",
			Resolution: "name a restore root that only root and you can rename; or look at who that user is, and acknowledge this conflict in the statement by its number",
			byName:     true,
		})
	}
	return conflicts
}

// laws lists what SPECTRUM-02 and SPECTRUM-03 have against a candidate that
// SPECTRUM-05 accepts.
func (d *deciding) laws() []conflict {
	var bundles []*verify.Bundle
	names := map[string]string{}
	dated := map[string]bool{}
	for run := range d.plan.Runs() {
		bundles = append(bundles, run.Bundle())
		names[run.Bundle().RunID()] = RunText(run.Bundle())
		dated[run.Bundle().RunID()] = !run.Bundle().Completed().IsZero()
	}
	var conflicts []conflict
	for _, found := range verify.Findings(bundles) {
		c := conflict{Path: found.RunID, Claim: names[found.RunID] + ": " + found.Message}
		switch found.Code {
		case verify.ChainOrderViolation:
			c.Type = timingConflict
			c.Current = "a chain's runs were completed one after the other"
			c.Authority = "SPECTRUM-03 decides on order: " + string(found.Code)
			c.Risk = "a later state may be replaced by an earlier one"
			c.Resolution = "find out in which order the runs were made, and name them so"
			if !dated[found.RunID] {
				c.Current = "a run says when it was completed"
				c.Resolution = "have the run sealed again with a date that can be read, or acknowledge that its date is not known"
			}
		case verify.InvalidChainReference:
			c.Type = sourceConflict
			c.Current = "an input is an output of the same run or of an earlier one"
			c.Authority = "SPECTRUM-03 decides on references: " + string(found.Code)
			c.Risk = "the run was made from something that is not part of the candidate"
			c.Resolution = "restore the chain that the input comes from, or acknowledge that it is not known"
		default:
			c.Type = versionConflict
			c.Current = "validators of the versions 1.0.0, 1.0.1 and 1.1.0 are supported"
			c.Authority = "SPECTRUM-02 decides on validators: " + string(found.Code)
			c.Risk = "the bundle may follow rules that are not known here"
			c.Resolution = "have it sealed again by a supported validator"
		}
		conflicts = append(conflicts, c)
	}
	return conflicts
}

// scopes lists the scopes that were asked for and that nothing is in. The
// default ones are not asked for by anybody.
func (d *deciding) scopes() []conflict {
	var conflicts []conflict
	for _, asked := range d.request.Asked.Scopes {
		if slices.ContainsFunc(d.items, func(i item) bool { return i.Scope == asked }) {
			continue
		}
		conflicts = append(conflicts, conflict{
			Type:       scopeConflict,
			Path:       string(asked),
			Current:    "the operator asks for this scope",
			Claim:      "the candidate has nothing in it",
			Authority:  "the operator says what is wanted, the signer what is there",
			Risk:       "what is wanted is not restored",
			Resolution: "look at constraints.restore_scopes in the candidate's TASK_SPEC.json, or do not ask for it",
		})
	}
	return conflicts
}

// identity reports, once for each run, an identity layer of another agent. One that was not
// requested blocks nothing.
func (d *deciding) identity() []conflict {
	if !slices.Contains(d.request.Asked.Scopes, scope.SameAgentIdentityLayer) {
		return nil
	}
	var conflicts []conflict
	for n, run := range d.runs {
		items := d.ofRun(n, func(i *item) bool { return i.Label == nontransferable })
		if len(items) == 0 {
			continue
		}
		conflicts = append(conflicts, conflict{
			Type:       identityConflict,
			Path:       run,
			Current:    "the operator's agent is " + agentText(d.request.Asked.Agent, "not named"),
			Claim:      "the identity layer is that of " + agentText(d.claims[n].text["agent_id"], "an agent that is not named"),
			Authority:  "an identity layer is restored for the same agent only (protocol section 6)",
			Risk:       "one agent would take over the role of another",
			Resolution: "leave it out, which is what is proposed; what is another agent's is absorbed, not restored (protocol section 6)",
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

// staleness says that the active savepoint is of a later candidate, or may be, and that a
// candidate is dated in the future.
func (d *deciding) staleness() []conflict {
	completed, _ := completedOf(d.plan)
	var conflicts []conflict
	if d.future {
		conflicts = append(conflicts, conflict{
			Type:       timingConflict,
			Path:       SourceID(d.plan),
			Current:    "it is not that late yet",
			Claim:      "this candidate was completed in the future, at " + timeText(completed),
			Authority:  "the clock of this machine outranks what the signer says of the time",
			Risk:       "its date does not say whether it is older than what is there",
			Resolution: "find out which clock is wrong; have the run sealed again, or acknowledge that its date is not known",
		})
	}
	if d.unsure {
		conflicts = append(conflicts, conflict{
			Type:       staleContext,
			Path:       d.request.Current.ID,
			Current:    "the active savepoint is of a candidate that was completed at " + knownTime(d.request.Current.Completed),
			Claim:      "this candidate was completed at " + dateText(d.plan),
			Authority:  "current state outranks the restore candidate",
			Risk:       "whether this is older is not known: what was decided since may be reverted",
			Resolution: "restore a candidate with a date, or acknowledge that this state is wanted",
		})
	}
	if !d.stale {
		return conflicts
	}
	return append(conflicts, conflict{
		Type:       staleContext,
		Path:       d.request.Current.ID,
		Current:    "the active savepoint is of a candidate that was completed at " + timeText(d.request.Current.Completed),
		Claim:      "this candidate was completed at " + timeText(completed),
		Authority:  "current state outranks the restore candidate",
		Risk:       "what was decided since would be reverted",
		Resolution: "restore a later candidate, or acknowledge that an earlier state is wanted",
	})
}

// completedOf is when the latest run of a candidate was completed, as it signed, and how
// many of its runs have no date that can be read.
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

// dateText is the date of a candidate for people.
func dateText(p *restore.Plan) string {
	latest, undated := completedOf(p)
	if latest.IsZero() || undated == 0 {
		return knownTime(latest)
	}
	return fmt.Sprintf("%s, and %s without a date", timeText(latest), count(undated, "run"))
}

func knownTime(t time.Time) string {
	if t.IsZero() {
		return unknown
	}
	return timeText(t)
}

// targets lists what stands where proposed items would go, and the result
// artifacts.
func (d *deciding) targets() []conflict {
	byPath := map[string]int{}
	for n := range d.items {
		if d.lists[n] == proposed {
			byPath[d.items[n].Path] = n + 1
		}
	}
	var conflicts []conflict
	for _, found := range d.restore.Conflicts() {
		number, isItem := byPath[found.Path]
		if !isItem && !isResult(found.Path) {
			continue
		}
		c := conflict{
			Type:       stateConflict,
			Path:       found.Path,
			Current:    found.State,
			Claim:      "the restore would create this path",
			Authority:  "current state outranks the restore candidate",
			Risk:       "a restore never overwrites: the commit will be refused with " + string(found.Failure().Code),
			Resolution: "move the existing entry away, then preview again",
		}
		if d.isReplaceable(found) {
			c.Resolution = "preview again with --replace, which replaces the file; or move it away, then preview again"
			if !isItem {
				c.Resolution = "preview again with --replace, which displaces it if your last commit here made it; or move it away, then preview again"
			}
		}
		if d.restore.Replaces() {
			c.Risk = "it is not replaced: the commit will be refused with " + string(found.Failure().Code)
		}
		if found.Failure().Code == restore.FinalizeFailed {
			c.Risk = "a restore moves files into place, which works within one file system only: the commit will be refused with " + string(restore.FinalizeFailed)
			c.Resolution = "unmount it, or put a directory in the place of the subvolume, then preview again; or leave these items out, and restore them with a restore root that is in it"
		}
		if isItem && d.items[number-1].removed {
			c.Claim = "the change set removes this path"
			c.Risk = "it is not removed: the commit will be refused with " + string(found.Failure().Code)
		}
		if isItem {
			c.items = []int{number}
			if d.items[number-1].Class == identical {
				c.Current += ", the same byte for byte"
				c.Resolution = "leave " + itemID(number) + " out: the same is there already; or preview again with --replace, which leaves that as it is"
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

func isResult(path string) bool { return path == restore.ManifestName || path == restore.ReportName }

// secrets lists the restricted items that are proposed.
func (d *deciding) secrets() []conflict {
	var conflicts []conflict
	for n := range d.items {
		i := &d.items[n]
		if !d.mayHoldSecret(i) {
			continue
		}
		c := conflict{
			Type:       privacyConflict,
			Path:       i.Path,
			items:      []int{i.number},
			Current:    "restricted context is not restored unless an operator wants it",
			Claim:      orElse(i.Reason, "the signer declares it restricted_context"),
			Authority:  "the operator's approval is needed (protocol section 5)",
			Risk:       "whoever may read the restore root may read a secret",
			Resolution: "leave it out, or see who may read " + strconv.Quote(d.request.Origin.RestoreRoot),
		}
		if found, ok := d.request.Privacy.Match(i.path); ok && found.Operator {
			c.Type = preferenceConflict
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

// ofRun are the numbers of the items of one run that fit. The items of a run stand
// together, in the order of the runs.
func (d *deciding) ofRun(run int, fits func(*item) bool) []int {
	from, _ := slices.BinarySearchFunc(d.items, run, func(i item, run int) int { return i.run - run })
	var numbers []int
	for n := from; n < len(d.items) && d.items[n].run == run; n++ {
		if fits(&d.items[n]) {
			numbers = append(numbers, n+1)
		}
	}
	return numbers
}

// numbers are the numbers of the items that fit.
func (d *deciding) numbers(fits func(*item) bool) []int {
	var numbers []int
	for n := range d.items {
		if fits(&d.items[n]) {
			numbers = append(numbers, n+1)
		}
	}
	return numbers
}
