package main

import "github.com/spf13/cobra"

// exactly and atLeast are cobra's argument checks, as errors of usage.
func exactly(n int) cobra.PositionalArgs { return asUsage(cobra.ExactArgs(n)) }

func atLeast(n int) cobra.PositionalArgs { return asUsage(cobra.MinimumNArgs(n)) }

func asUsage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usage(cmd, "%w", err)
		}
		return nil
	}
}
