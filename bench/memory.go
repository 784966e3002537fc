package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

const memoryLimit = 300_000_000 // bytes

// memory takes the peak of resident memory with very many outputs: of verify, of a mounted
// view, and of a view of which every file was read.
func (b *bench) memory(ctx context.Context) (rows []row, err error) {
	err = b.withSet(ctx, set{name: "memory", n: b.sizes.tiny, size: tinySize}, func(s set) error {
		peak, err := b.spectrum.verifyPeak(ctx, s)
		if err != nil {
			return err
		}
		rows = append(rows, resident("memory of verify", peak, memoryLimit))
		more, err := b.viewMemory(ctx, s)
		rows = append(rows, more...)
		return err
	})
	return rows, err
}

func (b *bench) viewMemory(ctx context.Context, s set) (rows []row, err error) {
	m, err := b.mountSpectrum(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	idle, err := memoryPeak(m)
	if err != nil {
		return nil, err
	}
	if err := readAll(m.root, s); err != nil {
		return nil, err
	}
	used, err := memoryPeak(m)
	return []row{
		resident("memory of mount", idle, memoryLimit),
		resident("memory of mount, every file read", used, memoryLimit),
	}, err
}

// memoryNow returns the resident memory of a server in KiB, memoryPeak the most it ever was.
func memoryNow(m *mounted) (int64, error)  { return status(m, "VmRSS") }
func memoryPeak(m *mounted) (int64, error) { return status(m, "VmHWM") }

func status(m *mounted, field string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	return parseStatus(text, field)
}

// parseStatus returns a field of /proc/PID/status that is in kB, which are KiB.
func parseStatus(status []byte, field string) (int64, error) {
	lines := bufio.NewScanner(bytes.NewReader(status))
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), field+":"); ok {
			number, ok := strings.CutSuffix(strings.TrimSpace(rest), " kB")
			if !ok {
				return 0, fmt.Errorf("unit of %q", lines.Text())
			}
			return strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		}
	}
	return 0, fmt.Errorf("no %s", field)
}
