package report

import "strings"

// Rendered reads code spans of Markdown as CommonMark does. It returns the text as it
// is shown, and what of it is not code; ok is false when a code span has no end.
func Rendered(markdown string) (shown, outside string, ok bool) {
	for {
		begin, rest, found := strings.Cut(markdown, "`")
		shown += begin
		outside += begin + " "
		if !found {
			return shown, outside, true
		}
		fence := "`"
		for strings.HasPrefix(rest, "`") {
			fence, rest = fence+"`", rest[1:]
		}
		code, after, closed := cutFence(rest, fence)
		if !closed {
			return "", "", false
		}
		if strings.HasPrefix(code, " ") && strings.HasSuffix(code, " ") && strings.Trim(code, " ") != "" {
			code = code[1 : len(code)-1]
		}
		shown += code
		markdown = after
	}
}

// cutFence cuts text at the first run of backticks that is as long as fence.
func cutFence(text, fence string) (code, after string, ok bool) {
	for at := 0; at < len(text); {
		run := len(text[at:]) - len(strings.TrimLeft(text[at:], "`"))
		if run == len(fence) {
			return text[:at], text[at+run:], true
		}
		at += max(run, 1)
	}
	return "", "", false
}
