// Package report writes previews for people: as Markdown, the ten sections of protocol
// section 8 ([Report.WriteMarkdown]); as a web page ([Report.WritePage]); as a summary of one
// screen ([Report.WriteSummary]) or of a few lines ([Report.WriteRecap]); piece by piece
// ([Report.Overview]); and the Restore Commit Report of section 11 ([Commit]).
//
// # Trust and promise
//
// It decides nothing. It uses a copy of a preview ([preview.Preview.Shown]), and reads files only through the
// restore that was previewed: those of the candidate are checked, and those of the restore root must be as
// they were previewed, or nothing is shown. Every name and every text from a bundle or from the disk is
// quoted or escaped, so that none can forge a line, a cell or markup.
package report
