package verify

import (
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// instant is a time of RFC 3339. Package time supports neither leap seconds nor more than nine
// digits of a fraction, and the order in time depends on both.
type instant struct {
	second   time.Time // the one before, of a leap second
	leap     bool
	fraction string // "" or a point and digits, the last of which is not 0
}

// rfc3339Form is the grammar of RFC 3339, section 5.6. Package time accepts more: a comma, an hour
// of one digit, an offset of 25 hours.
var rfc3339Form = regexp.MustCompile(`^(\d{4}-\d\d-\d\dT\d\d:\d\d:)(\d\d)(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

func rfc3339(v canonjson.Value) (instant, error) {
	text, _ := v.Text()
	parts := rfc3339Form.FindStringSubmatch(strings.ToUpper(text)) // "t" and "z" are allowed
	if parts == nil {
		return instant{}, errors.New("not the form of RFC 3339")
	}
	i := instant{fraction: strings.TrimRight(parts[3], ".0"), leap: parts[2] == "60"}
	if i.leap {
		parts[2] = "59"
	}
	var err error
	if i.second, err = time.Parse(time.RFC3339, parts[1]+parts[2]+parts[4]); err != nil {
		return instant{}, err
	}
	if i.leap && !endsMonth(i.second) {
		return instant{}, errors.New("no month ends with this leap second")
	}
	return i, nil
}

// endsMonth reports whether a second is the last one of a month in UTC: leap seconds follow
// only such a second (RFC 3339, section 5.7).
func endsMonth(second time.Time) bool {
	next := second.UTC().Add(time.Second)
	return next.Day() == 1 && next.Hour() == 0 && next.Minute() == 0 && next.Second() == 0
}

// after reports whether i is strictly later than j.
func (i instant) after(j instant) bool {
	switch {
	case !i.second.Equal(j.second):
		return i.second.After(j.second)
	case i.leap != j.leap:
		return i.leap
	default:
		return i.fraction > j.fraction
	}
}

// time returns the instant with the precision of package time. Digits beyond the ninth are cut
// off; a leap second becomes the first second of the next month.
func (i instant) time() time.Time {
	t := i.second
	if i.leap {
		t = t.Add(time.Second)
	}
	if part, err := time.ParseDuration("0" + i.fraction[:min(len(i.fraction), 10)] + "s"); err == nil {
		t = t.Add(part)
	}
	return t
}
