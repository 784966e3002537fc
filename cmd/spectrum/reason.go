package main

import (
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// maxReasonText bounds a --reason, in bytes: it is kept in a snapshot, and in the log.
const maxReasonText = 2 << 10

// placeholder stands for a reason in the commands that hints show.
const placeholder = "TEXT"

func reasonFlag(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", "reason, in `words`, for the audit log")
}

// checkReason rejects what cannot be logged, before anything is done.
func checkReason(cmd *cobra.Command, reason string) error {
	switch {
	case !cmd.Flags().Changed("reason"):
		return nil
	case strings.TrimSpace(reason) == "":
		return usage(cmd, "--reason must not be empty")
	case reason == placeholder:
		return usage(cmd, "--reason: replace %s by your own words: why", placeholder)
	case len(reason) > maxReasonText || !utf8.ValidString(reason):
		return usage(cmd, "--reason takes at most %d bytes of UTF-8", maxReasonText)
	}
	return nil
}

// noReason is in the audit log for a rollback without a reason.
const noReason = "asked for"

// reasonOr returns the given reason, or a default.
func reasonOr(reason, other string) string {
	if reason == "" {
		return other
	}
	return reason
}

// restoreReason returns the reason of a snapshot restore for the log, with its target.
func restoreReason(target, reason string) string {
	if reason == "" {
		return "snapshot " + target + " was asked for"
	}
	return "snapshot " + target + ": " + reason
}

func dryRunFlag(cmd *cobra.Command, dryRun *bool) {
	cmd.Flags().BoolVar(dryRun, "dry-run", false, "list what would be done, but write nothing")
}
