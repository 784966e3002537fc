package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// manualExamples are one or two lines for each command, as a user types them. TestManualExamples
// compares them with the commands.
var manualExamples = map[string][]string{
	"spectrum": {
		"spectrum demo /tmp/harbour",
		"spectrum help preview",
	},
	"spectrum audit":        {"spectrum audit verify"},
	"spectrum audit show":   {"spectrum audit show --json"},
	"spectrum audit verify": {"spectrum audit verify"},
	"spectrum cat": {
		"spectrum cat project/CONTRACTS/_runs/week-12 plan/week.md",
		"spectrum cat project/CONTRACTS/_runs/week-12 -- plan/week.md plan/draft.md",
	},
	"spectrum commit": {
		"spectrum commit project/CONTRACTS/_runs/week-12 /srv/plan",
		"spectrum commit --preview a71d39dd --approve 'Approved: commit the restore preview exactly as proposed.'",
	},
	"spectrum completion":            {"spectrum completion bash"},
	"spectrum completion bash":       {"spectrum completion bash > /etc/bash_completion.d/spectrum"},
	"spectrum completion fish":       {"spectrum completion fish > ~/.config/fish/completions/spectrum.fish"},
	"spectrum completion powershell": {"spectrum completion powershell > spectrum.ps1"},
	"spectrum completion zsh":        {"spectrum completion zsh > /usr/share/zsh/site-functions/_spectrum"},
	"spectrum demo":                  {"spectrum demo /tmp/harbour"},
	"spectrum diff": {
		"spectrum diff project/CONTRACTS/_runs/week-12 /srv/plan",
		"spectrum diff --stat project/CONTRACTS/_runs/week-12 /srv/plan",
	},
	"spectrum push":        {"spectrum push project/CONTRACTS/_runs/week-12 s3://harbour/runs"},
	"spectrum pull":        {"spectrum pull s3://harbour/runs@BUNDLE_ROOT week-12"},
	"spectrum store":       {"spectrum store check s3://harbour/runs"},
	"spectrum store check": {"spectrum store check --read-data s3://harbour/runs"},
	"spectrum store gc":    {"spectrum store gc s3://harbour/runs"},
	"spectrum doctor":      {"spectrum doctor", "spectrum doctor /srv/plan"},
	"spectrum keygen":      {"spectrum keygen", "spectrum keygen --out key.pem"},
	"spectrum log":         {"spectrum log --last 10 /srv/plan", "spectrum log 40fe7afa"},
	"spectrum ls":          {"spectrum ls -l project/CONTRACTS/_runs/week-12"},
	"spectrum mount": {
		"spectrum mount --daemon project/CONTRACTS/_runs/week-12 /mnt/view",
		"spectrum mount --all project/CONTRACTS/_runs /mnt/view",
	},
	"spectrum preview": {
		"spectrum preview project/CONTRACTS/_runs/week-12 /srv/plan",
		"spectrum preview --savepoint latest /srv/copy",
	},
	"spectrum quarantine":         {"spectrum quarantine list"},
	"spectrum quarantine list":    {"spectrum quarantine list --all"},
	"spectrum quarantine release": {"spectrum quarantine release 43766f23 --reason 'asked the planning office'"},
	"spectrum quarantine show":    {"spectrum quarantine show 43766f23"},
	"spectrum recover":            {"spectrum recover /srv/plan", "spectrum recover --acknowledge /srv/plan"},
	"spectrum review":             {"spectrum review project/CONTRACTS/_runs/week-12 /srv/plan"},
	"spectrum rollback": {
		"spectrum rollback --dry-run latest",
		"spectrum rollback --reason 'wrong week' 40fe7afa",
	},
	"spectrum run":              {"spectrum run -- make report", "spectrum run --base /srv/plan -- sed -i s/draft/final/ week.md"},
	"spectrum savepoint":        {"spectrum savepoint list"},
	"spectrum savepoint list":   {"spectrum savepoint list /srv/plan"},
	"spectrum savepoint show":   {"spectrum savepoint show latest"},
	"spectrum savepoint verify": {"spectrum savepoint verify latest /srv/plan", "spectrum savepoint verify a9f0cbcd"},
	"spectrum seal": {
		"spectrum seal plan report",
		"spectrum seal --base-git",
	},
	"spectrum snapshot":         {"spectrum snapshot list"},
	"spectrum snapshot diff":    {"spectrum snapshot diff e193ce2a", "spectrum snapshot diff e193ce2a latest"},
	"spectrum snapshot export":  {"spectrum snapshot export e193ce2a /tmp/before"},
	"spectrum snapshot list":    {"spectrum snapshot list /srv/plan"},
	"spectrum snapshot prune":   {"spectrum snapshot prune --keep-last 10 --keep-within 720h --dry-run /srv/plan"},
	"spectrum snapshot restore": {"spectrum snapshot restore e193ce2a", "spectrum snapshot restore --to /tmp/before e193ce2a week.md"},
	"spectrum snapshot show":    {"spectrum snapshot show latest"},
	"spectrum snapshot take":    {"spectrum snapshot take /srv/plan"},
	"spectrum snapshot verify":  {"spectrum snapshot verify e193ce2a", "spectrum snapshot verify --repair e193ce2a"},
	"spectrum snapshot watch":   {"spectrum snapshot watch --every 30m /srv/plan"},
	"spectrum status":           {"spectrum status", "spectrum status /srv/plan"},
	"spectrum trust":            {"spectrum trust list"},
	"spectrum trust add":        {"spectrum trust add e818666666ad6ea97b5f6f71d7dbd99008b1f94be3c7fca83f4c2f292a082947 --note 'planning office'"},
	"spectrum trust list":       {"spectrum trust list"},
	"spectrum trust remove":     {"spectrum trust remove e8186666"},
	"spectrum trust revoke":     {"spectrum trust revoke e8186666 --reason 'the key was on a stolen laptop'"},
	"spectrum umount":           {"spectrum umount /mnt/view"},
	"spectrum verify": {
		"spectrum verify project/CONTRACTS/_runs/week-12",
		"spectrum verify --require-trusted --chain project/CONTRACTS/_runs/week-11 project/CONTRACTS/_runs/week-12",
	},
	"spectrum version":    {"spectrum version --json"},
	"mount.spectrum":      {"mount -t spectrum /srv/project/CONTRACTS/_runs/week-12 /mnt/view"},
	"mount.fuse.spectrum": {"mount -t fuse.spectrum /srv/project/CONTRACTS/_runs/week-12 /mnt/view"},
}

// addExamples adds the examples to the commands of a tree.
func addExamples(root *cobra.Command) {
	for _, cmd := range allCommands(root) {
		var lines []string
		for _, line := range manualExamples[cmd.CommandPath()] {
			lines = append(lines, "  "+line)
		}
		cmd.Example = strings.Join(lines, "\n")
	}
}
