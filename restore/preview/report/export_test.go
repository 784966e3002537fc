package report

// Undoing is what is said of how a commit can be undone.
var Undoing = undoing

// Text are words that are safe in Markdown.
var Text = text
