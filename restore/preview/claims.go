package preview

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// Unknown is the protocol's name for a missing declaration.
const Unknown = "unknown"

// claims are the declarations in the signed TASK_SPEC.json of a run, from the members of "constraints" that
// are read here. None of them is a command.
type claims struct {
	text   map[string]string // by name of the member
	scopes scope.Map
	faults []string // declarations that cannot be understood
	unread bool     // one of the faults is in the scopes, so the protected items are unknown
	// changes is the reason why the change set cannot be used, so that nothing may be restored; nil if it
	// can be used.
	changes error
	// blocks is the same for the block table.
	blocks error
}

// unusable reports whether nothing of the run may be restored.
func (c *claims) unusable() bool { return c.changes != nil || c.blocks != nil }

// textMembers are the members of "constraints" that are texts.
var textMembers = []string{
	"title", "parent_savepoint_id", "agent_id", "receiving_agent_id", "project",
	"version", "artifact_status", "transfer_mode", "privacy_level",
}

func claimsOf(taskSpec canonjson.Object) claims {
	c := claims{text: map[string]string{}}
	value, said := taskSpec.Get("constraints")
	constraints, isObject := value.Object()
	if said && !isObject { // none of its members can be read
		c.faults, c.unread = append(c.faults, "constraints is not an object"), true
	}
	for _, name := range textMembers {
		c.addText(constraints, name)
	}
	var err error
	if c.scopes, err = scope.ParseMap(value); err != nil {
		c.faults, c.unread = append(c.faults, err.Error()), true
	}
	return c
}

// status is the artifact_status without what people do not see in it: case, white space, and
// characters that cannot be seen.
func (c *claims) status() string {
	var scan visible.Scanner
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || scan.Hidden(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, c.text["artifact_status"])
}

// inheritable returns the value of a member that a derived run inherits with the files.
func (c *claims) inheritable(member string) string {
	if status := c.status(); member == "artifact_status" && slices.Contains(badStatuses, status) {
		return status
	}
	return c.text[member]
}

func (c *claims) addText(constraints canonjson.Object, name string) {
	value, ok := constraints.Get(name)
	if !ok {
		return
	}
	text, isText := value.Text()
	if !isText {
		c.faults = append(c.faults, fmt.Sprintf("constraints.%s is not a string", name))
		return
	}
	c.text[name] = text
}

// claimsOfAll reads the claims of every run, in the order of the candidate.
func claimsOfAll(p *restore.Plan) []claims {
	var all []claims
	for run := range p.Runs() {
		c := claimsOf(run.Bundle().TaskSpec())
		c.changes, c.blocks = run.ChangesFault(), run.BlocksFault()
		all = append(all, c)
	}
	return all
}

// maxClaims is the number of different values that a chain may declare in one field.
const maxClaims = 4

// claimed returns the values that the runs declare in one field, each once, in the order of the runs.
func claimed(all []claims, name string) string {
	var texts []string
	seen := map[string]bool{"": true}
	for _, c := range all {
		if text := c.text[name]; !seen[text] {
			seen[text] = true
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return Unknown
	}
	if len(texts) > maxClaims {
		texts = append(texts[:maxClaims], fmt.Sprintf("and %d more", len(texts)-maxClaims))
	}
	return clipped(strings.Join(texts, ", "))
}

// maxClaimBytes is the maximum length of a declaration in one field, and of the detail of one finding.
const maxClaimBytes = 1000

func clipped(text string) string {
	if len(text) <= maxClaimBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxClaimBytes], "") + " …"
}

// sourceOf returns the source section of the report.
func sourceOf(p *restore.Plan, all []claims) Source {
	s := Source{
		Title:    claimed(all, "title"),
		Parent:   claimed(all, "parent_savepoint_id"),
		Agent:    claimed(all, "agent_id"),
		Receiver: claimed(all, "receiving_agent_id"),
		Project:  claimed(all, "project"),
		Version:  claimed(all, "version"),
		Date:     dateText(p),
		Status:   claimed(all, "artifact_status"),
		Transfer: claimed(all, "transfer_mode"),
		Privacy:  claimed(all, "privacy_level"),
	}
	return s
}
