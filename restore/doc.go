// Package restore decides what a restore would do, by SPECTRUM-06, up to and
// including the phase PLAN. It writes nothing.
//
// # Flow
//
//		runs ─ [ForView] ──────→ [Plan]                 (what a candidate would put where)
//		runs ─ [ForRoot] ──────→ [Restore] = Plan + restore root + conflicts
//		                             └→ package preview → package action
//
//	 1. PREFLIGHT, eligibility: the strict gate for every bundle, then what a
//	    restore itself asks of PROOF.json and OUTPUT_HASHES.json (8.4.3);
//	 2. PREFLIGHT, restore root (8.4.4) and, in a chain, the run directories
//	    that must not be there yet (6.3);
//	 3. PREFLIGHT, path safety in path order (8.4.5);
//	 4. PLAN: sources exist and are regular files (5.3), and the two result
//	    artifacts are made, byte for byte (section 7);
//	 5. existing entries at targets are listed: these conflicts decide
//	    the first check of EXECUTE, which is not this package's. With
//	    [ForRootReplacing], and of a change set, existing files are read, and are
//	    identical, are replaced or removed, have diverged or block.
//
// A failure is a [*Failure] with exactly one code, the first in this order.
//
// # Trust and promise
//
// A Plan can only be made from bundles that were verified here and now, and a
// Restore only from a Plan. Both say what was true when they were made: the
// sources and the restore root may change at any time, which is why a commit
// checks what it copied, and looks again.
package restore
