package dispatch

// heaped is the order of a heap of handles. placed says where a handle stands now; -1: no longer in it.
type heaped interface {
	before(a, b uint32) bool
	placed(h uint32, at int32)
}

// push adds a handle.
func push[O heaped](o O, s []uint32, h uint32) []uint32 {
	s = append(s, h)
	up(o, s, len(s)-1)
	return s
}

// drop takes out the handle at a place.
func drop[O heaped](o O, s []uint32, at int32) []uint32 {
	h, last := s[at], len(s)-1
	s[at] = s[last]
	s = s[:last]
	if int(at) < last {
		fix(o, s, at)
	}
	o.placed(h, -1)
	return s
}

// fix puts the handle at a place where it belongs, after its order changed.
func fix[O heaped](o O, s []uint32, at int32) {
	h := s[at]
	up(o, s, int(at))
	if s[at] == h {
		down(o, s, int(at))
	}
}

func up[O heaped](o O, s []uint32, i int) {
	h := s[i]
	for i > 0 {
		p := (i - 1) / 2
		if !o.before(h, s[p]) {
			break
		}
		s[i] = s[p]
		o.placed(s[i], int32(i))
		i = p
	}
	s[i] = h
	o.placed(h, int32(i))
}

func down[O heaped](o O, s []uint32, i int) {
	h := s[i]
	for {
		c := 2*i + 1
		if c >= len(s) {
			break
		}
		if c+1 < len(s) && o.before(s[c+1], s[c]) {
			c++
		}
		if !o.before(s[c], h) {
			break
		}
		s[i] = s[c]
		o.placed(s[i], int32(i))
		i = c
	}
	s[i] = h
	o.placed(h, int32(i))
}
