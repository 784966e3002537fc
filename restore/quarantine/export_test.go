package quarantine

// Hurried is a store that does not wait for its lock.
func Hurried(s *Store) *Store { return &Store{s.dir, s.log, 0} }

// The bounds of a record.
const (
	MaxMarks  = maxMarks
	MaxDetail = maxDetail
	MaxRecord = maxRecord
)

// Again reads a file as a record, judges that nothing is found any more, and
// reads what would be written then.
func Again(raw []byte) (before, after Record, err error) {
	v, err := parse(raw)
	if err != nil {
		return Record{}, Record{}, err
	}
	before = v.Record
	v.update(nil, now())
	_, raw, err = v.next()
	if err != nil {
		panic(err)
	}
	if v, err = parse(raw); err != nil {
		panic(err)
	}
	return before, v.Record, nil
}
