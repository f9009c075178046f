package folder

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Line is one record of a log.
type Line struct {
	N      int64  `json:"n"`           // 1, 2, 3, ... over both streams
	Millis int64  `json:"t"`           // Unix time of reading it, in ms
	Stream string `json:"s"`           // "out", "err", or "sys" for what the supervisor adds
	Text   string `json:"x"`           // without its line end; what isn't UTF-8 is replaced
	Part   bool   `json:"p,omitempty"` // the line was too long and goes on in the next record
}

// Page is a part of a log.
type Page struct {
	Lines []Line
	Next  int64 // where the next page starts, as an offset in bytes
}

// ReadLog reads records from an offset that an earlier page gave, or 0: at most max. The last record of a file that is being
// written to may be half there; it is left for the next page.
func (f Folder) ReadLog(offset int64, limit int) (Page, error) {
	page := Page{Next: offset}
	file, err := os.Open(f.LogFile())
	if errors.Is(err, fs.ErrNotExist) {
		return page, nil
	}
	if err != nil {
		return page, fmt.Errorf("open the log: %w", err)
	}
	defer file.Close()
	r := bufio.NewReader(io.NewSectionReader(file, offset, 1<<62-offset))
	for len(page.Lines) < limit {
		b, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return page, nil
		}
		if err != nil {
			return page, fmt.Errorf("read the log: %w", err)
		}
		var l Line
		if err := json.Unmarshal(b, &l); err != nil {
			return page, fmt.Errorf("read the log at byte %d: %w", page.Next, err)
		}
		page.Lines = append(page.Lines, l)
		page.Next += int64(len(b))
	}
	return page, nil
}
