package report

// Undoing has the sentences about the rollback of a commit.
var Undoing = undoing

// Text are words that are safe in Markdown.
var Text = text
