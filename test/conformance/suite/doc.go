// Package suite reads, writes and runs the cases of the conformance suite. This comment
// is the reference of their format. docs/conformance-suite.md describes their content.
//
//  1. [Load] reads the cases. A directory without cases is an error.
//  2. [Runner.Run] makes the tree of a case, runs its commands, and compares.
//  3. [Format] writes a case; [Parse] of that is the same case.
//
// The package trusts the cases and nothing else: a program passes only by its exit
// status, its bytes on stdout, and the tree that it leaves.
//
// # A case
//
// A case is a txtar archive: a comment, then files. A file begins with a line
// "-- HEADER --" and ends at the next such line.
//
//	Two faults. The first: VALIDATOR_IDENTITY.json has a field "name" (FIELD_EXTRA).
//	The second: the signed decision is "REJECT" (DECISION_INVALID).
//	The first decides: phase 3 (identity) before phase 5 (payload).
//
//	law: SPECTRUM-05 phase 3; SPECTRUM-05 phase 5
//	command: verify project/CONTRACTS/_runs/run-1
//	exit: 1
//	result: {"code":"FIELD_EXTRA","details":{},"ok":false}
//	if-given: {"artifact":"VALIDATOR_IDENTITY.json"}
//	-- project/CONTRACTS/_runs/run-1/TASK_SPEC.json chomp --
//	{"inputs":[],"task_id":"task-1"}
//	-- project/out/a.txt --
//	alpha
//	-- root dir --
//
// The comment is text for people, an empty line, and lines "key: value":
//
//	law       the clauses that decide the case, for people
//	user      only "ordinary": the commands run as a user bound by permission bits; a
//	          runner that is root becomes another user, who owns the tree
//	command   a command; the keys below belong to the last one above them
//	exit      the exit status
//	result    JSON: the expected output
//	if-given  JSON object: members of details that may be absent, but must have this value
//	free      names of members of the result, separated by spaces, that may be absent
//	          or have any value
//
// The name of a case begins with its law (02, 03, 05, 06, or accept for accepted input)
// and states the verdict or the order that it shows.
//
// # The tree
//
// A header is a path below the working directory, then options. In paths, arguments and
// link targets %XX (two hex digits) is the byte XX: white space, "%", unprintable bytes
// and bytes that are not UTF-8 are written so.
//
//	(none)     a file with these bytes, with the last line feed
//	chomp      a file with these bytes without the last line feed
//	hex        a file whose bytes are in hex; white space is ignored
//	dir        a directory
//	link       a symbolic link; the content, without the last line feed, is its target, in
//	           which $WORK is the absolute path of the working directory
//	fifo       a FIFO
//	mode=0555  permission bits; default 0644 for files, 0755 for directories
//	pad=N      the file is filled up to N bytes with spaces
//	size=N     the file is extended to N bytes with zeros; it may be sparse
//	after      exists after an accepted restore; another entry with the same path is what
//	           it replaces
//	gone       exists before, not after, an accepted restore
//	any        with after: any content
//
// Parents of a listed path are directories. Modes are set at the end. An empty file has
// no content line.
//
// # Commands
//
// Each command starts from the tree as given; a runner may keep a tree that a command
// left untouched. The working directory is that of the tree; $WORK in an argument is its
// absolute path. SPECTRUM_STATE_DIR names a directory beside it, SPECTRUM_PROJECT_ROOT is
// empty.
//
//	verify ARGS   PROGRAM verify --json ARGS. --law resume is SPECTRUM-02, --law memory
//	              SPECTRUM-03, otherwise SPECTRUM-05; several run directories, or --chain,
//	              are a chain in this order.
//	restore ARGS  PROGRAM preview --json ARGS. With another exit status than 0 its output
//	              is the verdict. Otherwise its preview_id is the ID of PROGRAM commit
//	              --json --preview ID --approve "Approved: commit the restore preview
//	              exactly as proposed.", whose output is the verdict.
//
// The project root is the directory of CONTRACTS/_runs or LAW/CONTRACTS/_runs, or the one
// of --project-root. Other flags are --restore-root, --validator-build-id (SPECTRUM-02,
// strict mode), and for replacements and change sets --replace and --decide.
//
// # The verdict
//
//  1. The exit status is exit.
//  2. stdout is one JSON object in canonical form (keys in order of their UTF-8 bytes, no
//     white space, no final line feed; characters from U+007F may be \u escapes) and
//     nothing else. stderr is free.
//  3. Of a result with "ok":false and details, each member of details in result is present
//     with that value; other members are free. A member in if-given has that value if it
//     is present. message may be present, a text; path may be, if it repeats details.
//  4. Each other member of result is present with exactly that value, and no member that
//     is neither in result nor in free. So an accepted verification has details {}, and a
//     restore exactly the four members of SPECTRUM-06 section 8.5.3.
//  5. Everything below the working directory is untouched: kind, content, permission bits
//     (this runner also compares inodes and times). After a restore with exit 0, gone
//     entries are absent, after entries have their kind and content (RESTORE_MANIFEST.json
//     and RESTORE_REPORT.json byte for byte), with their parent directories, and there is
//     nothing else. Modes and times of restored entries are free; for an after entry with
//     a mode the owner's execute bit must match.
//  6. The command ends; a FIFO must not block it. This runner waits two minutes.
//
// Required members of details under SPECTRUM-05 are artifact for ARTIFACT_MISSING,
// ARTIFACT_MALFORMED and FORBIDDEN_ARTIFACT, path for OUTPUT_MISSING, and path, expected,
// actual for HASH_MISMATCH; others are in if-given. run_id is required in a chain if the
// law says which run is at fault, and always under SPECTRUM-03, with path (section 6.2).
package suite
