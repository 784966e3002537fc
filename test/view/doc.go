// Package view uses the mounted view of the real binary hard, and against its
// owner's wishes.
//
// The readers are processes of their own, with up to a thousand threads each.
// Content follows from a file's name and a place in it, so that they judge every
// byte: a read gives what was signed, or EIO if what it asks for is spoilt. Some
// servers are built with the race detector. The tests need root. They take the
// binary from SPECTRUM_BIN or build it.
//
// The cases of FUSE robustness, and the tests that hold them, here or, in the
// process, in fusefs/fusemount; scripts are those of cmd/spectrum:
//
//	kill -9 while readers wait          TestKillWhileReading, fusemount.TestMountDead
//	mount over a dead mount             TestKillWhileReading, fusemount.TestMountDead
//	mount over what is not empty        TestMountpointRejected, fusemount.TestMountpointRejected
//	a link to a mount point             TestMountpointThroughLink, fusemount.TestMountThroughSymlink
//	signals with a file open            TestUnmountUnderLoad, TestManySignals, spectrum.TestBusyReader,
//	                                    fusemount.TestMountBusyViewIsDetached, fusemount.TestMountGrace
//	abort of the connection             TestCutConnectionEndsServer, fusemount.TestMountAborted
//	a stopped server, a killed reader   TestStopped, TestStoppedUnderLoad, fusemount.TestMountStopped
//	a source truncated; past the end    TestSources, TestThousandReadersRace, TestPosix,
//	                                    fusemount.TestMountPastTheEnd
//	a tampered page in memory           TestMapped
//	10,000 reads of one file            TestTenThousandReads
//	few descriptors, many opens         TestFewDescriptors, fusemount.TestMountManyFilesFewDescriptors
//	a million files                     TestManyFiles, TestLongMillionFiles
//	every call that would change        TestReadOnly, TestReadOnlyNames, TestReadOnlyHandle,
//	                                    TestRemountedToWrite, TestMappedToWrite
//	unmount under load; cycles          TestUnmountUnderLoad, TestCycles, fusemount.TestMountCyclesLeaveNothing
//	a mount in what is served           TestMountpointRejected; the script mount.txtar
//
// There is no unmount by itself: a dead view stays where it is, to be seen, until
// umount or root removes it, and no second process watches over the first.
//
// What else the view must stand:
//
//	tampering, one report for a block   TestThousandReadersRace, TestOneProcessor, spectrum.TestTamperingAfterMount
//	sources become something else       TestSources, spectrum.TestSourceGoesAway
//	programs, run from the view         TestExecute, TestExecuteRejected
//	go-fuse's own functions             TestPosix
//	git, sqlite3, copying, building     TestGit, TestSQLite, TestCopies, TestGoBuild
//
// What was found to be the kernel's and is not a promise: the first file of a mount
// that is ever closed is waited for in the kernel until the server answers, also
// by a process that was killed; a request that a stopped server has taken already
// holds its reader until the server goes on or dies; and a page that does not
// check, in mapped memory, is SIGBUS.
package view
