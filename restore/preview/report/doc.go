// Package report writes previews for people: as Markdown, the ten sections of protocol
// section 8 ([Report.WriteMarkdown]); as a web page ([Report.WritePage]); as a summary of one
// screen ([Report.WriteSummary]) or of a few lines ([Report.WriteRecap]); piece by piece
// ([Report.Overview]); and the Restore Commit Report of section 11 ([Commit]).
//
// # Trust and promise
//
// It decides nothing. All that it has of a preview is a copy ([preview.Preview.Shown]), and what
// it reads of files it reads through the restore that was previewed: the candidate's are checked,
// and those of the restore root are as they were previewed, or nothing is shown. Every name and
// every text that comes from a bundle or from the disk is quoted or escaped, so that none can
// forge a line, a cell or markup.
package report
