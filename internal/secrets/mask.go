package secrets

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/url"
	"strings"
)

// Masker finds secret values in what a payload prints: as they are, in base64 wherever they begin in it, URL-encoded, as
// the inside of a JSON string, and each longer line of a value of several; all of them also wrapped over lines. Other
// disguises it does not see through: masking spares the careless, it does not stop a payload that means to tell. A
// Masker is made once for an Attempt and never changes; each stream of output has its own Stream.
type Masker struct {
	nodes []node
	first [256]int32 // the root's children
	wraps int        // line ends in a row that may stand inside a wrapped value
}

// node is a state of the Aho-Corasick automaton over all forms of all values: the text read last that some form begins
// with. Children are a list: almost every node has one.
type node struct {
	child, sibling int32
	fail           int32 // the state of the longest shorter text
	depth          int32 // length of its text
	match          int32 // length of the longest form that its text ends with; 0: none
	letter         byte
}

const mask = "***"

// wrapsLeast is how many line ends in a row are passed over at least; a value that has more in itself raises it.
const wrapsLeast = 4

// lineLeast is the least length at which a line of a longer value counts by itself.
const lineLeast = 8

// NewMasker makes the masker of the values.
func NewMasker(values ...[]byte) *Masker {
	m := &Masker{nodes: make([]node, 1), wraps: wrapsLeast}
	for _, value := range values {
		for _, form := range forms(value) {
			m.add(form)
		}
	}
	m.link()
	return m
}

// forms are the texts that a value is looked for as.
func forms(value []byte) (all [][]byte) {
	trimmed := bytes.TrimSpace(value)
	all = append(all, value, trimmed)
	if lines := bytes.FieldsFunc(trimmed, func(r rune) bool { return r == '\n' || r == '\r' }); len(lines) > 1 {
		for _, line := range lines {
			if line = bytes.TrimSpace(line); len(line) >= lineLeast {
				all = append(all, line)
			}
		}
	}
	for _, v := range [][]byte{value, trimmed} {
		for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
			all = append(all, []byte(encoding.EncodeToString(v)))
			for offset := range 3 {
				all = append(all, inBase64(encoding, v, offset))
			}
		}
		for _, text := range []string{url.QueryEscape(string(v)), url.PathEscape(string(v)), componentEscape(v)} {
			all = append(all, []byte(text), lowerHex(text))
		}
		all = append(all, inJSON(v, true), inJSON(v, false))
	}
	return all
}

// inBase64 is the part of the value's base64 that is the same whatever stands before and after it, when it begins offset
// bytes into a group of three.
func inBase64(encoding *base64.Encoding, v []byte, offset int) []byte {
	text := encoding.WithPadding(base64.NoPadding).EncodeToString(append(make([]byte, offset), v...))
	n := offset + len(v)
	whole := n/3*4 + []int{0, 1, 2}[n%3]
	return []byte(text[min(whole, []int{0, 2, 3}[offset]):whole])
}

// componentEscape is URL encoding as JavaScript's encodeURIComponent does it.
func componentEscape(v []byte) string {
	s := strings.ReplaceAll(url.QueryEscape(string(v)), "+", "%20")
	for _, plain := range []string{"!", "'", "(", ")", "*"} {
		s = strings.ReplaceAll(s, url.QueryEscape(plain), plain)
	}
	return s
}

// lowerHex is URL encoding with the digits of its escapes in lower case.
func lowerHex(s string) []byte {
	out := []byte(s)
	for i := 0; i+2 < len(out); i++ {
		if out[i] == '%' {
			copy(out[i+1:i+3], bytes.ToLower(out[i+1:i+3]))
			i += 2
		}
	}
	return out
}

func inJSON(v []byte, html bool) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(html)
	_ = e.Encode(string(v)) // a string into memory: never fails
	text := bytes.TrimSpace(out.Bytes())
	return text[1 : len(text)-1]
}

// add puts a form into the tree, less the line ends: the stream passes over them.
func (m *Masker) add(form []byte) {
	at, depth := int32(0), int32(0)
	if len(form)-bytes.Count(form, []byte("\n"))-bytes.Count(form, []byte("\r")) < MinValue {
		return
	}
	run := 0
	for _, b := range form {
		if b == '\n' || b == '\r' {
			run++
			m.wraps = max(m.wraps, run)
			continue
		}
		run = 0
		depth++
		next := m.childOf(at, b)
		if next == 0 {
			next = int32(len(m.nodes))
			m.nodes = append(m.nodes, node{letter: b, depth: depth})
			if at == 0 {
				m.first[b] = next
			} else {
				m.nodes[next].sibling, m.nodes[at].child = m.nodes[at].child, next
			}
		}
		at = next
	}
	m.nodes[at].match = depth
}

func (m *Masker) childOf(at int32, b byte) int32 {
	if at == 0 {
		return m.first[b]
	}
	for c := m.nodes[at].child; c != 0; c = m.nodes[c].sibling {
		if m.nodes[c].letter == b {
			return c
		}
	}
	return 0
}

// link finds where to go on when the next letter does not fit, level by level from the root.
func (m *Masker) link() {
	var queue []int32
	for _, c := range m.first {
		if c != 0 {
			queue = append(queue, c)
		}
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for c := m.nodes[at].child; c != 0; c = m.nodes[c].sibling {
			n := &m.nodes[c]
			n.fail = m.next(m.nodes[at].fail, n.letter)
			if n.match == 0 {
				n.match = m.nodes[n.fail].match
			}
			queue = append(queue, c)
		}
	}
}

// next is the state after one more letter.
func (m *Masker) next(at int32, b byte) int32 {
	for at != 0 {
		if c := m.childOf(at, b); c != 0 {
			return c
		}
		at = m.nodes[at].fail
	}
	return m.first[b]
}

// Mask masks a text that is whole.
func (m *Masker) Mask(text []byte) []byte {
	var out bytes.Buffer
	s := m.Stream(&out)
	_, _ = s.Write(text) // into memory: never fails
	_ = s.Close()
	return out.Bytes()
}

// Stream masks what is written to it on its way to w.
func (m *Masker) Stream(w io.Writer) *Stream { return &Stream{m: m, w: w} }
