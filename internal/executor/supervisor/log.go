package supervisor

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/roadstead/roadstead/internal/executor/folder"
)

const (
	maxLine   = 16 << 10
	minSecret = 4 // bytes; a shorter value is in every other word
)

// log writes the payload's output as numbered records to a file that never grows beyond its limit.
type log struct {
	limit int64
	masks *strings.Replacer

	mu    sync.Mutex
	file  *os.File
	n     int64
	size  int64
	over  bool
	last  string // of stderr
	broke error
}

func newLog(path string, limit int64, secrets map[string][]byte) (*log, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	return &log{limit: limit, masks: masks(secrets), file: f}, nil
}

// masks replaces each line of each secret: a job that prints its secret does not publish it.
func masks(secrets map[string][]byte) *strings.Replacer {
	var pairs []string
	for _, value := range secrets {
		for line := range bytes.Lines(value) {
			if line := strings.TrimSpace(string(line)); len(line) >= minSecret {
				pairs = append(pairs, line, "***")
			}
		}
	}
	return strings.NewReplacer(pairs...)
}

// copy reads one stream to its end. Beyond the limit it goes on reading and keeps nothing, so that a job that is being ended
// does not hang on a full pipe.
func (l *log) copy(stream string, r io.Reader) {
	lines := bufio.NewReaderSize(r, maxLine)
	for {
		b, err := lines.ReadSlice('\n')
		if len(b) > 0 {
			l.add(stream, b, errors.Is(err, bufio.ErrBufferFull))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

func (l *log) add(stream string, text []byte, part bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	line := l.masks.Replace(strings.TrimRight(strings.ToValidUTF8(string(text), "\uFFFD"), "\r\n"))
	if stream == "err" {
		l.last = line
	}
	if l.write(folder.Line{Stream: stream, Text: line, Part: part}, l.limit) {
		return
	}
	l.over = true
	l.write(folder.Line{Stream: "sys", Text: fmt.Sprintf("the log ends here: it may have %d bytes", l.limit)}, l.limit+maxLine)
}

// write adds a record unless it would pass the limit, and reports whether it did.
func (l *log) write(line folder.Line, limit int64) bool {
	line.N, line.Millis = l.n+1, time.Now().UnixMilli()
	b, err := json.Marshal(line)
	if err != nil {
		panic(err) // a struct of words and numbers
	}
	b = append(b, '\n')
	if l.size+int64(len(b)) > limit {
		return false
	}
	n, err := l.file.Write(b)
	l.n++
	l.size += int64(n)
	l.broke = errors.Join(l.broke, err)
	return err == nil
}

func (l *log) full() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

func (l *log) written() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size
}

// lastError is the last line of stderr.
func (l *log) lastError() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// close puts the log on the disk, before the record that says how long it is.
func (l *log) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := errors.Join(l.broke, l.file.Sync(), l.file.Close()); err != nil {
		return fmt.Errorf("keep the log: %w", err)
	}
	return nil
}
