package main

import "testing"

// TestHintsKeepTheStateDirectory: a command in a hint is for the state directory that was named.
func TestHintsKeepTheStateDirectory(t *testing.T) {
	t.Setenv(stateVariable, "/from/the/environment")
	for text, want := range map[string]string{
		`"spectrum rollback 12" undoes it`:                                 `"spectrum --state-dir '/a b' rollback 12" undoes it`,
		`hint: spectrum recover --acknowledge`:                             `hint: spectrum --state-dir '/a b' recover --acknowledge`,
		`"spectrum snapshot list" and "spectrum savepoint list" name them`: `"spectrum --state-dir '/a b' snapshot list" and "spectrum --state-dir '/a b' savepoint list" name them`,
		`hint: spectrum --state-dir '/a b' preview`:                        `hint: spectrum --state-dir '/a b' preview`,
		`"spectrum seal" makes one; spectrum: rollback 12`:                 `"spectrum --state-dir '/a b' seal" makes one; spectrum: rollback 12`,
	} {
		if got := (&app{stateDir: "/a b"}).here(text); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if got := (&app{stateDir: "/from/the/environment"}).here(text); got != text {
			t.Errorf("%s, want %s", got, text)
		}
	}
}
