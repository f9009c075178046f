package artifacts

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// File is one revision of a path. It never changes; a write makes the next revision.
type File struct {
	Repository string
	Path       string
	Revision   int64  // 1 for the first; rises by one with each write and deletion
	Digest     string // sha256:<hex> of the content; empty in a deletion
	Size       int64  // bytes
	MediaType  string
	CreatedAt  time.Time
	CreatedBy  string // account id
	Deleted    bool   // this revision is the path's deletion
}

// RevisionID names the immutable thing that a path resolved to: a rewritten path is another download (D-2.2).
func (f File) RevisionID() string { return fmt.Sprintf("%s/%s@%d", f.Repository, f.Path, f.Revision) }

// ETag is the file's strong entity tag, quotes included. It follows the content: two revisions of the same bytes
// share it, so that a download goes on over a re-upload of the same file.
func (f File) ETag() string {
	if f.Digest == "" {
		return ""
	}
	return `"` + f.Digest + `"`
}

// FileWrite is a revision about to be made.
type FileWrite struct {
	Repository string
	Path       string
	Digest     string
	Size       int64
	MediaType  string
	At         time.Time
	By         string
}

// FileRecords keeps files.
type FileRecords interface {
	// PutFile makes the path's next revision. check sees the current one, nil if there is none or it is a deletion,
	// in the same transaction; its error ends it. It may run more than once. created says that there was none.
	PutFile(ctx context.Context, w FileWrite, check func(current *File) error) (f File, created bool, err error)
	// DeleteFile makes a deletion the path's next revision, under check as above; not_found if there is none.
	DeleteFile(ctx context.Context, repository, path string, at time.Time, by string, check func(current *File) error) (File, error)
	// File finds the current revision of a path; a deletion is not_found.
	File(ctx context.Context, repository, path string) (File, error)
	// FileByDigest finds the newest revision with the digest, of a path that isn't deleted.
	FileByDigest(ctx context.Context, repository, digest string) (File, error)
	// ListFiles lists current revisions whose path begins with prefix, in byte order past after, deletions left out.
	ListFiles(ctx context.Context, repository, prefix, after string, limit int) ([]File, error)
	// ListRevisions lists a path's revisions below before, newest first, deletions included.
	ListRevisions(ctx context.Context, repository, path string, before int64, limit int) ([]File, error)
}

// PutOptions are the conditions of a write.
type PutOptions struct {
	IfMatch     string // value of the header If-Match; empty for none
	IfNoneMatch string // value of the header If-None-Match; empty for none
	Digest      string // sha256:<hex> the content must have; empty for any
	Size        int64  // content length where known, to refuse early; 0 or below: unknown
}

// Put stores body as the path's next revision. When it returns without error the bytes and the revision are durable.
// It needs Write.
func (s *Service) Put(ctx context.Context, p identity.Principal, repository, path, mediaType string, body io.Reader, want PutOptions) (f File, created bool, err error) {
	if err := CheckPath("path", path); err != nil {
		return File{}, false, err
	}
	if mediaType, err = checkMediaType(mediaType); err != nil {
		return File{}, false, err
	}
	if want.Digest != "" {
		if _, err := ParseDigest("digest", want.Digest); err != nil {
			return File{}, false, err
		}
	}
	cond, err := parseConditions(want.IfMatch, want.IfNoneMatch)
	if err != nil {
		return File{}, false, err
	}
	if err := s.access.Need(ctx, p, repository, identity.Write); err != nil {
		return File{}, false, err
	}
	// A look before the transfer spares the client sending what will be refused; the transaction decides.
	if err := s.checkNow(ctx, repository, path, cond); err != nil {
		return File{}, false, err
	}
	size := want.Size
	if size <= 0 {
		size = -1
	}
	digest, stored, err := s.blobs.Put(ctx, body, size, want.Digest)
	if err != nil {
		return File{}, false, err
	}
	w := FileWrite{Repository: repository, Path: path, Digest: digest, Size: stored, MediaType: mediaType, At: s.now(), By: p.ID}
	return s.records.PutFile(ctx, w, cond.check)
}

func (s *Service) checkNow(ctx context.Context, repository, path string, c conditions) error {
	f, err := s.records.File(ctx, repository, path)
	if fault.Is(err, fault.NotFound) {
		return c.check(nil)
	}
	if err != nil {
		return err
	}
	return c.check(&f)
}

// Stat finds the current revision of a path. It needs Read.
func (s *Service) Stat(ctx context.Context, p identity.Principal, repository, path string) (File, error) {
	if err := CheckPath("path", path); err != nil {
		return File{}, err
	}
	if err := s.access.Need(ctx, p, repository, identity.Read); err != nil {
		return File{}, err
	}
	return s.records.File(ctx, repository, path)
}

// StatDigest finds a file with the digest in the repository. Deleting a path takes its objects out of sight. It needs
// Read on this repository: an object is visible only through one that has it.
func (s *Service) StatDigest(ctx context.Context, p identity.Principal, repository, digest string) (File, error) {
	if _, err := ParseDigest("digest", digest); err != nil {
		return File{}, err
	}
	if err := s.access.Need(ctx, p, repository, identity.Read); err != nil {
		return File{}, err
	}
	return s.records.FileByDigest(ctx, repository, digest)
}

// Open opens the content of a file that Stat, StatDigest or ResolveLink gave. The caller closes it. It stays readable
// whatever happens to the path.
func (s *Service) Open(ctx context.Context, f File) (*os.File, error) {
	return s.blobs.Open(ctx, f.Digest)
}

// Delete makes a deletion the path's next revision. want's conditions apply. It needs Write.
func (s *Service) Delete(ctx context.Context, p identity.Principal, repository, path string, want PutOptions) error {
	if err := CheckPath("path", path); err != nil {
		return err
	}
	cond, err := parseConditions(want.IfMatch, want.IfNoneMatch)
	if err != nil {
		return err
	}
	if err := s.access.Need(ctx, p, repository, identity.Write); err != nil {
		return err
	}
	_, err = s.records.DeleteFile(ctx, repository, path, s.now(), p.ID, cond.check)
	return err
}

// List lists the current files whose path begins with prefix, in byte order of paths past after; next is empty on
// the last page. It needs Read.
func (s *Service) List(ctx context.Context, p identity.Principal, repository, prefix, after string, limit int) (page []File, next string, err error) {
	if err := checkPrefix("prefix", prefix); err != nil {
		return nil, "", err
	}
	if err := checkPrefix("after", after); err != nil {
		return nil, "", err
	}
	if err := s.access.Need(ctx, p, repository, identity.Read); err != nil {
		return nil, "", err
	}
	limit = identity.PageSize(limit)
	page, err = s.records.ListFiles(ctx, repository, prefix, after, limit+1)
	if err != nil {
		return nil, "", err
	}
	if len(page) > limit {
		page = page[:limit]
		next = page[limit-1].Path
	}
	return page, next, nil
}

// Revisions lists a path's revisions, newest first, below before (0: from the newest); next is 0 on the last page.
// Deletions are among them. It needs Read.
func (s *Service) Revisions(ctx context.Context, p identity.Principal, repository, path string, before int64, limit int) (page []File, next int64, err error) {
	if err := CheckPath("path", path); err != nil {
		return nil, 0, err
	}
	if before < 0 {
		return nil, 0, fault.Invalid("before", "must not be negative")
	}
	if err := s.access.Need(ctx, p, repository, identity.Read); err != nil {
		return nil, 0, err
	}
	limit = identity.PageSize(limit)
	page, err = s.records.ListRevisions(ctx, repository, path, before, limit+1)
	if err != nil {
		return nil, 0, err
	}
	if len(page) > limit {
		page = page[:limit]
		next = page[limit-1].Revision
	}
	return page, next, nil
}
