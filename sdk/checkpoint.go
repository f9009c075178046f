package sdk

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// checkpoint is what a new process needs to go on with a download: its place in the queue and its verified prefix
// (D-1.5, D-8.5). It lies beside the partial file.
type checkpoint struct {
	ID     string `json:"id"`               // Arkvory-Download-Id
	Ticket string `json:"ticket,omitempty"` // the latest
	URL    string `json:"url"`
	ETag   string `json:"etag,omitempty"` // pins the revision
	Digest string `json:"digest,omitempty"`
	Size   int64  `json:"size"`   // -1: not known yet
	Offset int64  `json:"offset"` // bytes hashed and fsynced, never more than what is safely in the partial file
	Hash   []byte `json:"hash,omitempty"`
}

func newCheckpoint(url string) checkpoint { return checkpoint{ID: newID(), URL: url, Size: -1} }

// newID makes a Download-Id: 128 random bits in the letters the header allows.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
}

// PartialFile is where the bytes of an unfinished download to file are kept.
func PartialFile(file string) string { return file + ".part" }

func checkpointFile(file string) string { return file + ".part.json" }

// loadCheckpoint reads the checkpoint of a download of url to file. One that can't be read, or is of another
// address, counts as absent: beginning anew is always right.
func loadCheckpoint(file, url string) (checkpoint, bool) {
	raw, err := os.ReadFile(checkpointFile(file))
	if err != nil {
		return checkpoint{}, false
	}
	var cp checkpoint
	if json.Unmarshal(raw, &cp) != nil || cp.URL != url || cp.ID == "" || cp.Offset < 0 {
		return checkpoint{}, false
	}
	if cp.Size < 0 && cp.Offset > 0 || cp.Size >= 0 && cp.Offset > cp.Size {
		return checkpoint{}, false
	}
	return cp, true
}

func (cp checkpoint) save(file string) error {
	raw, err := json.MarshalIndent(cp, "", "  ")
	if err != nil {
		return err
	}
	return writeAtomic(checkpointFile(file), append(raw, '\n'))
}

// writeAtomic replaces a file by rename, readable by its owner alone: a ticket is a place in the queue. What a killed
// process left half written has the same name each time, so that the next write takes it away.
func writeAtomic(name string, data []byte) error {
	half := filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+".new")
	if err := removeIfThere(half); err != nil {
		return err
	}
	tmp, err := os.OpenFile(half, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), name)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
	}
	return err
}

// removeIfThere removes a file; one that isn't there is no error.
func removeIfThere(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// hashState and restoreHash carry a SHA-256 across processes, so that resuming doesn't read the prefix again.
func hashState(h hash.Hash) []byte {
	state, err := h.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		return nil // the next process reads the prefix instead
	}
	return state
}

// restoreHash gives the hash of the first offset bytes of file. A state that wasn't made after exactly offset bytes
// (its last eight bytes are the count) is not believed: the prefix is read and hashed again.
func restoreHash(file io.ReaderAt, state []byte, offset int64) (hash.Hash, error) {
	h := sha256.New()
	if n := len(state); n > 8 && binary.BigEndian.Uint64(state[n-8:]) == uint64(offset) {
		if h.(encoding.BinaryUnmarshaler).UnmarshalBinary(state) == nil {
			return h, nil
		}
		h = sha256.New()
	}
	if _, err := io.Copy(h, io.NewSectionReader(file, 0, offset)); err != nil {
		return nil, fmt.Errorf("read the partial file again: %w", err)
	}
	return h, nil
}
