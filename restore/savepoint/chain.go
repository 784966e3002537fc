package savepoint

import "fmt"

// VerifyChain verifies all savepoints of a restore root with their Commit Reports: each is
// signed by the validator host (by any validator if host is ""), they are numbered without a
// gap, and each names the one before as its parent. The error is a [*DamageError] that names
// the first that fails.
func (s *Store) VerifyChain(root, host string) error {
	all, err := s.List(root)
	if err != nil {
		return err
	}
	var before Savepoint
	for _, sp := range all {
		if err := sp.follows(before, host); err != nil {
			return damage(sp.dir, err)
		}
		if _, err := sp.Report(); err != nil {
			return err
		}
		before = sp
	}
	return nil
}

func (sp Savepoint) follows(before Savepoint, host string) error {
	switch {
	case host != "" && sp.ValidatorID() != host:
		return fmt.Errorf("it is signed by validator %s, not by this host's %s", sp.ValidatorID(), host)
	case sp.Sequence() != before.Sequence()+1:
		return fmt.Errorf("it is number %d, and the one before it number %d", sp.Sequence(), before.Sequence())
	case sp.Parent() != before.id:
		return fmt.Errorf("its parent is %q, and the one before it %q", sp.Parent(), before.id)
	}
	return nil
}
