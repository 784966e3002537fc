package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// ownNamespace are settings that give a service a mount namespace of its own.
var ownNamespace = []string{
	"PrivateTmp", "PrivateDevices", "PrivateMounts", "ProtectSystem", "ProtectHome", "ProtectProc",
	"ProtectKernelTunables", "ProtectKernelModules", "ProtectKernelLogs", "ProtectControlGroups",
}

// hardened are the settings of each unit, and those that it names as not set.
var hardened = map[string]struct {
	set   map[string]string
	unset []string
}{
	"spectrum-snapshot@.service": {
		set: map[string]string{
			"CapabilityBoundingSet": "CAP_CHOWN CAP_DAC_OVERRIDE CAP_DAC_READ_SEARCH CAP_FOWNER CAP_FSETID CAP_SETFCAP CAP_SYS_ADMIN",
			"SystemCallFilter":      "@system-service ~@mount @privileged @obsolete @chown", "UMask": "0077", "DevicePolicy": "closed",
		},
		unset: append([]string{"ReadWritePaths", "User", "DynamicUser", "PrivateUsers", "RestrictSUIDSGID", "ProtectClock"}, ownNamespace...),
	},
	"spectrum-view@.service": {
		set: map[string]string{
			"CapabilityBoundingSet": "CAP_SYS_ADMIN CAP_DAC_READ_SEARCH CAP_DAC_OVERRIDE",
			"SystemCallFilter":      "@system-service @mount ~@obsolete", "DevicePolicy": "closed", "DeviceAllow": "/dev/fuse rw",
			"RestrictSUIDSGID": "yes", "ProtectClock": "yes",
		},
		unset: append([]string{"User", "DynamicUser", "PrivateUsers", "UMask"}, ownNamespace...),
	},
}

// inBoth are the settings of both units.
var inBoth = map[string]string{
	"NoNewPrivileges": "yes", "MemoryMax": "4G", "RestrictAddressFamilies": "AF_UNIX", "IPAddressDeny": "any", "SystemCallArchitectures": "native",
	"SystemCallErrorNumber": "EPERM", "RestrictNamespaces": "yes", "RestrictRealtime": "yes", "LockPersonality": "yes",
	"MemoryDenyWriteExecute": "yes", "ProtectHostname": "yes", "KeyringMode": "private",
}

// TestUnitsHardened: the services may do what they need and no more. A common setting that is
// left out is named in the unit, with the reason: a view in a mount namespace of its own is
// invisible to all other processes.
func TestUnitsHardened(t *testing.T) {
	t.Parallel()
	for name, want := range hardened {
		raw, err := os.ReadFile(filepath.Join(unitDir, name))
		if err != nil {
			t.Fatal(err)
		}
		settings, reasons := settingsOf(string(raw))
		for _, wanted := range []map[string]string{want.set, inBoth} {
			for key, value := range wanted {
				if settings[key] != value {
					t.Errorf("%s: %s=%s, want %s", name, key, settings[key], value)
				}
			}
		}
		for _, key := range want.unset {
			if _, set := settings[key]; set {
				t.Errorf("%s sets %s", name, key)
			}
			if !strings.Contains(reasons, key+"=") {
				t.Errorf("%s does not say why %s is not set", name, key)
			}
		}
		if _, err := exec.LookPath("systemd-analyze"); err == nil {
			exposure(t, name)
		}
	}
}

// settingsOf returns the settings of a unit, those of one name together, and what it says
// is not set.
func settingsOf(unit string) (settings map[string]string, reasons string) {
	settings, comments := map[string]string{}, ""
	for line := range strings.Lines(unit) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			comments += line + "\n"
			continue
		}
		if key, value, ok := strings.Cut(line, "="); ok {
			settings[key] = strings.TrimSpace(settings[key] + " " + value)
		}
	}
	_, reasons, _ = strings.Cut(comments, "# Not set, and why:")
	return settings, reasons
}

// exposure has systemd rate a unit: 10 is the worst.
func exposure(t *testing.T, name string) {
	t.Helper()
	out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--no-pager", filepath.Join(unitDir, name)).CombinedOutput()
	if err != nil && strings.Contains(string(out), "offline") {
		return // it is older than that
	}
	found := regexp.MustCompile(`exposure level for .*: ([0-9.]+)`).FindSubmatch(out)
	if found == nil {
		t.Errorf("%s: %v: %.300s", name, err, out)
		return
	}
	if level, err := strconv.ParseFloat(string(found[1]), 64); err != nil || level >= 6 {
		t.Errorf("%s: exposure %s, %v, want less than 6", name, found[1], err)
	}
}
