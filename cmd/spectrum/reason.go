package main

import (
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// maxReasonText bounds a --reason, in bytes: it is kept in a snapshot, and in the log.
const maxReasonText = 2 << 10

func reasonFlag(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", "why, in `words`; it is in the audit log")
}

// checkReason refuses what could not be logged as it is, before anything is done.
func checkReason(cmd *cobra.Command, reason string) error {
	switch {
	case !cmd.Flags().Changed("reason"):
		return nil
	case strings.TrimSpace(reason) == "":
		return usage(cmd, "--reason needs words")
	case len(reason) > maxReasonText || !utf8.ValidString(reason):
		return usage(cmd, "--reason takes at most %d bytes of UTF-8", maxReasonText)
	}
	return nil
}

// noReason is in the audit log for a rollback that was given no reason.
const noReason = "asked for"

// reasonOr is the reason that was given, or another one where none was.
func reasonOr(reason, other string) string {
	if reason == "" {
		return other
	}
	return reason
}

// restoreReason is why a snapshot is restored, for the log, which it tells the target too.
func restoreReason(target, reason string) string {
	if reason == "" {
		return "snapshot " + target + " was asked for"
	}
	return "snapshot " + target + ": " + reason
}

func dryRunFlag(cmd *cobra.Command, dryRun *bool) {
	cmd.Flags().BoolVar(dryRun, "dry-run", false, "list what would be done, and write nothing")
}
