package savepoint

// Pick is what Find does with the savepoints that it has found.
func Pick(id string, ids ...string) (Savepoint, error) {
	var all []Savepoint
	for _, one := range ids {
		all = append(all, Savepoint{id: one})
	}
	return pick(all, id)
}
