package secrets

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/roadstead/roadstead/internal/fault"
)

const (
	keyBytes    = 32
	maxKeyFile  = 1 << 20
	keyFileHead = "# Keys of the secrets: id and key, the last line seals what is new. Without this file no secret can be read.\n"
)

var keyID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// Keyring holds the keys that values are sealed under. They live in a file of the server's machine, never in the
// database: who has a copy of one has not got the secrets. One line is one key, its id and its 32 bytes in base64; the
// last line's key seals what is new. Several processes may share the file.
type Keyring struct {
	file string

	mu   sync.Mutex
	keys []key
	read fs.FileInfo // the file that keys came from
}

type key struct {
	id   string
	text []byte
}

// OpenKeyring reads the file. Where there is none it is made with one key, readable by its owner only, unless another
// process makes it at the same moment. A file that others can read is refused.
func OpenKeyring(file string) (*Keyring, error) {
	k := &Keyring{file: file}
	err := k.load()
	if errors.Is(err, fs.ErrNotExist) {
		if err = k.create(); err == nil {
			err = k.load()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("opening the keys of the secrets: %w", err)
	}
	return k, nil
}

// create makes the file with its first key, whole or not at all. A file that appears meanwhile stays.
func (k *Keyring) create() error {
	first, err := newKey(1)
	if err != nil {
		return err
	}
	name, err := k.prepare([]key{first})
	if err != nil {
		return err
	}
	err = os.Link(name, k.file)
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return errors.Join(err, os.Remove(name), k.syncFolder())
}

// newKey makes the nth key of a file. Its id is no other file's: keys of two files are never taken for each other.
func newKey(n int) (key, error) {
	made := key{id: "k" + strconv.Itoa(n) + "-" + rand.Text()[:10], text: make([]byte, keyBytes)}
	_, err := rand.Read(made.text)
	return made, err
}

// prepare writes the keys, durably, to a file beside the ring's and names it.
func (k *Keyring) prepare(keys []key) (name string, err error) {
	f, err := os.CreateTemp(filepath.Dir(k.file), ".keys-*") // made with mode 0600
	if err != nil {
		return "", err
	}
	_, err = f.Write(format(keys))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

func (k *Keyring) syncFolder() error {
	dir, err := os.Open(filepath.Dir(k.file))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func format(keys []key) []byte {
	var out bytes.Buffer
	out.WriteString(keyFileHead)
	for _, k := range keys {
		fmt.Fprintf(&out, "%s %s\n", k.id, base64.StdEncoding.EncodeToString(k.text))
	}
	return out.Bytes()
}

// load reads the file anew. The caller holds the lock, or nobody else has the ring yet.
func (k *Keyring) load() error {
	f, err := os.Open(k.file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fault.New(fault.Conflict, "%s can be read by others than its owner: chmod 600 it", k.file)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return err
	}
	keys, err := parseKeys(text)
	if err != nil {
		return fmt.Errorf("%s: %w", k.file, err)
	}
	k.keys, k.read = keys, info
	return nil
}

// parseKeys reads a key file. It never repeats what stands in it.
func parseKeys(text []byte) (keys []key, err error) {
	seen := map[string]bool{}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		words := strings.Fields(line)
		if len(words) != 2 || !keyID.MatchString(words[0]) {
			return nil, fault.Invalid("line "+strconv.Itoa(n), "must be the key's id and its base64")
		}
		raw, err := base64.StdEncoding.DecodeString(words[1])
		if err != nil || len(raw) != keyBytes {
			return nil, fault.Invalid("line "+strconv.Itoa(n), "must hold a key of %d bytes in base64", keyBytes)
		}
		if seen[words[0]] {
			return nil, fault.Invalid("line "+strconv.Itoa(n), "has the id of a line before")
		}
		seen[words[0]] = true
		keys = append(keys, key{words[0], raw})
	}
	if len(keys) == 0 {
		return nil, fault.Invalid("keys", "must be at least one")
	}
	return keys, nil
}

// refresh reads the file again if another process replaced it. When it can't, the keys that are known stay.
func (k *Keyring) refresh() {
	now, err := os.Stat(k.file)
	if err == nil && os.SameFile(now, k.read) && now.ModTime().Equal(k.read.ModTime()) && now.Size() == k.read.Size() {
		return
	}
	_ = k.load() // a rotation goes on under the key before, and the next rewrap finds what it sealed
}

// current is the key that seals what is new.
func (k *Keyring) current() (id string, text []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refresh()
	last := k.keys[len(k.keys)-1]
	return last.id, last.text
}

// find is the key of the id. One that is not known may have been added by another process, so the file is read again.
func (k *Keyring) find(id string) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if text := k.known(id); text != nil {
		return text, nil
	}
	if err := k.load(); err != nil {
		return nil, fmt.Errorf("reading the keys again: %w", err)
	}
	if text := k.known(id); text != nil {
		return text, nil
	}
	return nil, fmt.Errorf("the key %q is not in %s", id, k.file)
}

func (k *Keyring) known(id string) []byte {
	for _, one := range k.keys {
		if one.id == id {
			return one.text
		}
	}
	return nil
}

// add makes a new key the current one. It is on the disk before anything is sealed under it. Processes that share the
// file add in turn, each to what the one before left.
func (k *Keyring) add() (id string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	lock, err := os.OpenFile(k.file+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", fmt.Errorf("adding a key: %w", err)
	}
	defer func() { _ = lock.Close() }() // the lock goes with it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("adding a key: %w", err)
	}
	if err := k.load(); err != nil {
		return "", fmt.Errorf("adding a key: %w", err)
	}
	made, err := newKey(len(k.keys) + 1)
	if err != nil {
		return "", fmt.Errorf("adding a key: %w", err)
	}
	keys := append(k.keys[:len(k.keys):len(k.keys)], made)
	name, err := k.prepare(keys)
	if err != nil {
		return "", fmt.Errorf("adding a key: %w", err)
	}
	if err := os.Rename(name, k.file); err != nil {
		return "", errors.Join(fmt.Errorf("adding a key: %w", err), os.Remove(name))
	}
	if err := k.syncFolder(); err != nil {
		return "", fmt.Errorf("adding a key: %w", err)
	}
	return made.id, k.load()
}
