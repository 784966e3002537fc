package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// version is what a release is stamped with.
var version string

func newVersion(app *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "print the version",
		Args:  exactly(0),
		RunE: func(*cobra.Command, []string) error {
			version := programVersion()
			return app.result("spectrum "+version, map[string]any{"go": runtime.Version(), "ok": true, "version": version})
		},
	}
}

// programVersion is the version of the release, else what the build knows of it.
func programVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// programDate is the date of what the program was built from: the one that whoever
// builds a package says (SOURCE_DATE_EPOCH), else that of the commit, else the
// beginning of time. It is never that of the clock.
func programDate() time.Time {
	if seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		return time.Unix(seconds, 0)
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			date, err := time.Parse(time.RFC3339, setting.Value)
			if setting.Key == "vcs.time" && err == nil {
				return date
			}
		}
	}
	return time.Unix(0, 0)
}
