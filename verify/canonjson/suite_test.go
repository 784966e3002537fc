package canonjson_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/plainjson"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// suiteCase is one input. The first letter of its name is the class that a
// test suite of JSON parsers would put it in: y must be accepted by every
// parser, n by none, i is for the implementation to decide. What this parser
// decides is the column ok; strict parsing is why two of class y and most of
// class i are rejected.
type suiteCase struct {
	name string
	in   string
	ok   bool
}

// suite is all of them.
var suite = slices.Concat(suiteCases, suiteClasses)

var suiteCases = []suiteCase{
	// Arrays.
	{"y empty array", `[]`, true},
	{"y array with space in it", "[ \t\r\n]", true},
	{"y array in array", `[[],[[]]]`, true},
	{"y one of each kind", `[null,1,"1",{},[],true,false]`, true},
	{"y several nulls", `[1,null,null,null,2]`, true},
	{"y array after white space", "\n\t [1]", true},
	{"y array before white space", "[1]\r\n ", true},
	{"y white space round the comma", `[1 , 2]`, true},
	{"n comma at the end of an array", `[1,]`, false},
	{"n comma at the start of an array", `[,1]`, false},
	{"n two commas in an array", `[1,,2]`, false},
	{"n only a comma in an array", `[,]`, false},
	{"n no comma between elements", `[1 2]`, false},
	{"n no comma between arrays", `[[1][2]]`, false},
	{"n colon in an array", `["a":1]`, false},
	{"n colon for a comma", `[1:2]`, false},
	{"n semicolon in an array", `[1;2]`, false},
	{"n array without an end", `[1`, false},
	{"n array without an end, after a comma", `[1,`, false},
	{"n array with an end too many", `[1]]`, false},
	{"n array closed as an object", `[1}`, false},
	{"n array of stars", `[*]`, false},
	{"n number and bracket only", `1]`, false},
	{"n array with newlines, without an end", "[\n1\n,\n2", false},
	{"n vertical tab between elements", "[1,\v2]", false},
	{"n form feed between elements", "[1,\f2]", false},

	// Numbers.
	{"y zero", `0`, true},
	{"y minus zero", `[-0]`, true},
	{"y minus zero with a fraction", `[-0.0]`, true},
	{"y zero with an exponent", `[0e1]`, true},
	{"y zero with a signed exponent", `[0e+1]`, true},
	{"y integer", `[123]`, true},
	{"y negative integer", `[-123]`, true},
	{"y fraction", `[123.456789]`, true},
	{"y capital exponent", `[1E22]`, true},
	{"y capital negative exponent", `[1E-2]`, true},
	{"y capital positive exponent", `[1E+2]`, true},
	{"y fraction and exponent", `[123.456e78]`, true},
	{"y fraction and negative exponent", `[12.5e-3]`, true},
	{"y exponent with leading zeros", `[1e-007]`, true},
	{"y close to zero", `[-0.` + strings.Repeat("0", 80) + `1]`, true},
	{"y number after a space", `[ 4]`, true},
	{"y a number alone", `-0.1`, true},
	{"n leading zero", `[01]`, false},
	{"n negative leading zero", `[-01]`, false},
	{"n two zeros", `[00]`, false},
	{"n plus sign", `[+1]`, false},
	{"n two minus signs", `[--1]`, false},
	{"n plus and minus", `[+-1]`, false},
	{"n minus alone", `[-]`, false},
	{"n minus and a space", `[- 1]`, false},
	{"n minus and a letter", `[-a]`, false},
	{"n no digit before the point", `[.5]`, false},
	{"n minus and a point", `[-.5]`, false},
	{"n no digit after the point", `[1.]`, false},
	{"n no digit between point and exponent", `[1.e1]`, false},
	{"n no digit in the exponent", `[1e]`, false},
	{"n only a sign in the exponent", `[1e+]`, false},
	{"n two signs in the exponent", `[1e+-1]`, false},
	{"n fraction in the exponent", `[1e2.5]`, false},
	{"n two exponents", `[1e1e1]`, false},
	{"n two points", `[1.2.3]`, false},
	{"n space in a number", `[1 000.0]`, false},
	{"n hexadecimal", `[0x1F]`, false},
	{"n hexadecimal digits", `[1F]`, false},
	{"n octal", `[0o17]`, false},
	{"n underscore", `[1_000]`, false},
	{"n not a number", `[NaN]`, false},
	{"n minus not a number", `[-NaN]`, false},
	{"n infinity", `[Infinity]`, false},
	{"n minus infinity", `[-Infinity]`, false},
	{"n short infinity", `[Inf]`, false},
	{"n an expression", `[1+2]`, false},
	{"n letter after a digit", `[1a]`, false},
	{"n fullwidth digit", "[\uff11]", false},
	{"n number cut by a bad byte", "[1\xe5]", false},
	{"n exponent cut by a bad byte", "[1e1\xe5]", false},
	{"i integer of 100 digits", `[` + strings.Repeat("9", 100) + `]`, true},
	{"i negative integer of 400 digits", `[-` + strings.Repeat("1", 400) + `]`, true},
	{"i underflow", `[123e-10000000]`, true},
	{"i exponent that no integer holds, negative", `[1.5e-` + strings.Repeat("9", 60) + `]`, true},
	{"i overflow", `[1.5e+9999]`, false},
	{"i negative overflow", `[-123123e100000]`, false},
	{"i exponent that no integer holds", `[0.4e` + strings.Repeat("9", 60) + `]`, false},
	{"i just beyond the largest", `[1.7976931348623159e308]`, false},

	// Strings.
	{"y empty string", `""`, true},
	{"y ASCII", `["asd "]`, true},
	{"y every short escape", `["\"\\\/\b\f\n\r\t"]`, true},
	{"y escaped NUL", `["\u0000"]`, true},
	{"y escaped control character", `["\u0012"]`, true},
	{"y backslash and u", `["\\u0000"]`, true},
	{"y backslash before the end", `["\\"]`, true},
	{"y backslashes and quotes", `["\\\"\\\\\""]`, true},
	{"y backslash and letters", `["\\a","\\n"]`, true},
	{"y escapes of one to three bytes", `["\u0060\u012a\u12AB"]`, true},
	{"y surrogate pair", `["\ud801\udc37"]`, true},
	{"y two surrogate pairs", `["\ud83d\ude39\ud83d\udc8d"]`, true},
	{"y the last pair", `["\uDBFF\uDFFF"]`, true},
	{"y comment in a string", `["a/*b*/c/*d//e"]`, true},
	{"y delete", "[\"\x7f\"]", true},
	{"y UTF-8 of two bytes", "[\"\u03c0\"]", true},
	{"y UTF-8 of three bytes", "[\"\u20ac\"]", true},
	{"y UTF-8 of four bytes", "[\"\U0001d11e\"]", true},
	{"y the last character", "[\"\U0010ffff\"]", true},
	{"y literal noncharacters", "[\"\uffff\ufdd0\U0001bfff\"]", true},
	{"y escaped noncharacters", `["\uFFFE\uFDD0\uFFFF"]`, true},
	{"y noncharacter as a pair", `["\uD83F\uDFFE"]`, true},
	{"y literal line separators", "[\"\u2028\u2029\"]", true},
	{"y escaped line separators", `["\u2028\u2029"]`, true},
	{"y zero width and no-break space", `["\u200B\u00A0"]`, true},
	{"y literal replacement character", "[\"\ufffd\"]", true},
	{"y byte order mark in a string", "[\"\ufeff\"]", true},
	{"n single quotes", `['a']`, false},
	{"n no quotes", `[a]`, false},
	{"n string without an end", `["a`, false},
	{"n only a quote", `"`, false},
	{"n escaped end", `["\"]`, false},
	{"n newline in a string", "[\"a\nb\"]", false},
	{"n tab in a string", "[\"\t\"]", false},
	{"n NUL in a string", "[\"a\x00a\"]", false},
	{"n the last control character", "[\"\x1f\"]", false},
	{"n escape x", `["\x00"]`, false},
	{"n escape a", `["\a"]`, false},
	{"n escape v", `["\v"]`, false},
	{"n escape single quote", `["\'"]`, false},
	{"n escape 0", `["\0"]`, false},
	{"n escape U", `["\U00000000"]`, false},
	{"n escaped newline", "[\"\\\n\"]", false},
	{"n escaped emoji", "[\"\\\U0001f300\"]", false},
	{"n escape without digits", `["\u"]`, false},
	{"n escape with three digits", `["\u00A"]`, false},
	{"n escape with a letter that is no digit", `["\u00G0"]`, false},
	{"n escape with braces", `["\u{0041}"]`, false},
	{"n escape cut by the end", `["\u00`, false},
	{"n pair cut", `["\ud834\udd"]`, false},
	{"n pair cut in its second escape", `["\uD800\u"]`, false},
	{"n pair with a bad second escape", `["\uD800\u1x"]`, false},
	{"n escape cut by a bad byte", "[\"\\u\xe5\"]", false},
	{"n backslash and a bad byte", "[\"\\\xe5\"]", false},
	{"n text after a string", `["a" b]`, false},
	{"i lone high surrogate", `["\uDADA"]`, false},
	{"i lone low surrogate", `["\uDFAA"]`, false},
	{"i high surrogate and a letter", `["\uD888x"]`, false},
	{"i high surrogate and an escape", `["\uD888\u1234"]`, false},
	{"i high surrogate and newline", `["\uD800\n"]`, false},
	{"i two high surrogates", `["\uD800\uD800\uDC00"]`, false},
	{"i surrogates in the wrong order", `["\uDd1e\uD834"]`, false},
	{"i surrogate in a name", `{"\uD800":1}`, false},
	{"i Latin-1", "[\"\xe9\"]", false},
	{"i lone continuation byte", "[\"\x81\"]", false},
	{"i cut sequence", "[\"\xe0\xff\"]", false},
	{"i sequence cut by the quote", "[\"\xe2\x82\"]", false},
	{"i slash in two bytes", "[\"\xc0\xaf\"]", false},
	{"i NUL in two bytes", "[\"\xc0\x80\"]", false},
	{"i sequence of five bytes", "[\"\xf8\x88\x80\x80\x80\"]", false},
	{"i sequence of six bytes", "[\"\xfc\x83\xbf\xbf\xbf\xbf\"]", false},
	{"i beyond U+10FFFF", "[\"\xf4\xbf\xbf\xbf\"]", false},
	{"i surrogate in UTF-8", "[\"\xed\xa0\x80\"]", false},
	{"i pair in UTF-8", "[\"\xed\xa0\xbd\xed\xb2\xa1\"]", false},
	{"i bad byte in a name", "{\"\xff\":1}", false},
	{"i UTF-16, little end first", "[\x00\"\x00\xe9\x00\"\x00]\x00", false},
	{"i UTF-16, big end first", "\x00[\x00\"\x00\xe9\x00\"\x00]", false},
	{"i UTF-16 with a byte order mark", "\xff\xfe[\x00]\x00", false},

	// Objects.
	{"y empty object", `{}`, true},
	{"y empty name", `{"":0}`, true},
	{"y one member", `{"a":[]}`, true},
	{"y NUL in a name", `{"foo\u0000bar":42}`, true},
	{"y names in no order", `{"b":1,"a":2,"c":3}`, true},
	{"y white space everywhere", " { \"a\" :\n1 ,\t\"b\" : { } \r} ", true},
	{"y long names", `{"` + strings.Repeat("x", 3000) + `":"` + strings.Repeat("y", 3000) + `"}`, true},
	{"y one name in two objects", `{"a":{"a":1},"b":{"a":1}}`, true},
	{"y names that differ in case", `{"verified":true,"Verified":false}`, true},
	{"y names that only look alike", "{\"\u00fc\":1,\"u\u0308\":2}", true},
	{"y (refused) double name", `{"a":"b","a":"c"}`, false},
	{"y (refused) double member", `{"a":"b","a":"b"}`, false},
	{"i double name, once escaped", `{"a":1,"\u0061":2}`, false},
	{"i double name, not beside each other", `{"b":1,"a":2,"c":3,"b":4}`, false},
	{"i double name, the least of all", `{"a":1,"b":2,"a":3}`, false},
	{"i double name, the greatest of all", `{"c":1,"b":2,"c":3}`, false},
	{"i double name, in order but for one", `{"a":1,"c":2,"b":3,"c":4}`, false},
	{"i double empty name", `{"":1,"":1}`, false},
	{"i double name, deep", `[{"x":[{"k":1,"j":2,"k":3}]}]`, false},
	{"i double name with a pair, once escaped", "{\"\U0001f4a1\":1,\"\\ud83d\\udca1\":2}", false},
	{"i double name around an object", `{"a":{"b":1,"c":2},"a":{}}`, false},
	{"n comma at the end of an object", `{"a":1,}`, false},
	{"n two commas in an object", `{"a":1,,"b":2}`, false},
	{"n only a comma in an object", `{,}`, false},
	{"n no colon", `{"a" 1}`, false},
	{"n two colons", `{"a"::1}`, false},
	{"n comma for a colon", `{"a",1}`, false},
	{"n equals sign for a colon", `{"a"=1}`, false},
	{"n no value", `{"a":}`, false},
	{"n no value and no colon", `{"a"}`, false},
	{"n no name", `{:1}`, false},
	{"n number as a name", `{1:1}`, false},
	{"n null as a name", `{null:1}`, false},
	{"n array as a name", `{[]:1}`, false},
	{"n name without quotes", `{a:1}`, false},
	{"n name in single quotes", `{'a':1}`, false},
	{"n object without an end", `{"a":1`, false},
	{"n object without an end, after a comma", `{"a":1,`, false},
	{"n object closed as an array", `{"a":1]`, false},
	{"n object closed twice", `{}}`, false},
	{"n value after an object in an object", `{"a":{} "b":1}`, false},
	{"n double name in what is no JSON", `{"a":1,"a":2`, false},

	// Structure.
	{"y true alone", `true`, true},
	{"y false alone", `false`, true},
	{"y null alone", ` null `, true},
	{"y string alone", `"a"`, true},
	{"n nothing", ``, false},
	{"n only white space", " \t\r\n", false},
	{"n two values", `{} {}`, false},
	{"n two values without a space", `[][]`, false},
	{"n two numbers", `1 2`, false},
	{"n a comma after the value", `{},`, false},
	{"n a bracket after the value", `[]]`, false},
	{"n a NUL after the value", "[]\x00", false},
	{"n a byte order mark after the value", "{}\ufeff", false},
	{"n only a byte order mark", "\ufeff", false},
	{"n part of a byte order mark", "\xef\xbb{}", false},
	{"n capital True", `[True]`, false},
	{"n capital NULL", `[NULL]`, false},
	{"n cut true", `[tru]`, false},
	{"n true and a letter", `[truex]`, false},
	{"n undefined", `[undefined]`, false},
	{"n line comment", "[1] // one", false},
	{"n block comment", `[1/* one */]`, false},
	{"n hash comment", "# one\n[1]", false},
	{"n no-break space", "[\u00a0]", false},
	{"n ideographic space", "\u3000[]", false},
	{"n line separator", "[\u20281]", false},
	{"n zero width space", "[\u200b]", false},
	{"n backspace", "[\b]", false},
	{"n angle brackets", `<null>`, false},
	{"n a star", `*`, false},
	{"n only a bracket", `[`, false},
	{"n only a brace", `{`, false},
	{"n only an end", `]`, false},
	{"n bracket and a quote", `["`, false},
	{"n brackets and braces that go on", strings.Repeat(`[{"":`, 50), false},
	{"n a bad byte", "\xe5", false},
	{"n bad byte in an array", "[\xff]", false},
	{"i byte order mark", "\ufeff{}", false},
	{"i 500 levels", string(nested(500)), true},
	{"i 512 levels", string(nested(canonjson.MaxDepth)), true},
	{"i 513 levels", string(nested(canonjson.MaxDepth + 1)), false},
	{"i 513 levels of objects", strings.Repeat(`{"a":`, 512) + "{}" + strings.Repeat("}", 512), false},
	{"i 512 levels of objects", strings.Repeat(`{"a":`, 511) + "{}" + strings.Repeat("}", 511), true},
}

// nested is an array of this many levels.
func nested(levels int) []byte {
	return []byte(strings.Repeat("[", levels) + strings.Repeat("]", levels))
}

func TestSuite(t *testing.T) {
	classes := map[byte]int{}
	for _, c := range suite {
		classes[c.name[0]]++
		value, err := canonjson.Parse([]byte(c.in))
		if (err == nil) != c.ok {
			t.Errorf("%s: %.80q: error %v", c.name, c.in, err)
		}
		if err != nil && len(value.Append(nil)) > 0 {
			t.Errorf("%s: a value came with the error", c.name)
		}
		if _, err := plainjson.Parse([]byte(c.in)); (err == nil) != c.ok {
			t.Errorf("%s: the plain parser: %.80q: error %v", c.name, c.in, err)
		}
	}
	if classes['y'] < 95 || classes['n'] < 188 || classes['i'] < 35 {
		t.Errorf("cases went missing: %v", classes)
	}
}

// TestSuiteInside puts every case where artifacts have their values: what is
// rejected alone is rejected as a member's value and as an element too.
func TestSuiteInside(t *testing.T) {
	for _, c := range suite {
		if strings.HasPrefix(c.name, "i 51") || strings.Trim(c.in, " \t\r\n") == "" {
			continue // one level more changes the verdict
		}
		for _, around := range [][2]string{{`{"a":`, `}`}, {`[0,`, `,0]`}} {
			if strings.HasSuffix(c.in, ",") || strings.HasPrefix(c.in, "# ") || !c.ok && strings.HasPrefix(around[0], "[") {
				continue // the frame could complete it
			}
			if _, err := canonjson.Parse([]byte(around[0] + c.in + around[1])); (err == nil) != c.ok {
				t.Errorf("%s: %s…%s: error %v", c.name, around[0], around[1], err)
			}
		}
	}
}
