package verify

// AddHoles counts bytes as holes of outputs that were read.
func AddHoles(a *Attested, n int64) { a.holes.Add(n) }
