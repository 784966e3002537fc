package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const memoryLimit = 300_000_000 // bytes

// memory takes the peak of resident memory with very many outputs: of verify, of a mounted
// view, and of a view of which every file was read.
func (b *bench) memory(ctx context.Context) (rows []row, err error) {
	err = b.withSet(ctx, "memory", b.sizes.tiny, tinySize, func(s set) error {
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
	idle, err := vmHWM(m.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	for i := range b.sizes.tiny {
		if err := readFile(filepath.Join(m.mountpoint, s.file(i)), tinySize); err != nil {
			return nil, err
		}
	}
	used, err := vmHWM(m.cmd.Process.Pid)
	return []row{
		resident("memory of mount", idle, memoryLimit),
		resident("memory of mount, every file read", used, memoryLimit),
	}, err
}

// vmHWM gives the peak of a process's resident memory in KiB.
func vmHWM(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	return parseHWM(status)
}

func parseHWM(status []byte) (int64, error) {
	lines := bufio.NewScanner(bytes.NewReader(status))
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			number, ok := strings.CutSuffix(strings.TrimSpace(rest), " kB")
			if !ok {
				return 0, fmt.Errorf("unit of %q", lines.Text())
			}
			return strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		}
	}
	return 0, errors.New("no VmHWM")
}
