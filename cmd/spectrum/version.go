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

// programVersion returns the version of the release, else that of the build information.
func programVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// programDate returns the date of the program's source: SOURCE_DATE_EPOCH of the package build,
// else the time of the commit, else 1970. It never uses the clock.
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
