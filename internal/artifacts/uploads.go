package artifacts

import (
	"context"
	"io"
	"time"

	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// Upload is a resumable upload: bytes are appended over any number of requests, then become a revision of a file.
type Upload struct {
	ID          string
	Repository  string
	Path        string
	MediaType   string
	Size        int64  // bytes in all, said at the start
	Digest      string // the content must have it; empty for any
	IfMatch     string // conditions of the write, as in PutOptions
	IfNoneMatch string
	CreatedAt   time.Time
	CreatedBy   string // only this principal may go on with it
	ExpiresAt   time.Time
	Revision    int64 // the revision it became; 0 while unfinished
	Offset      int64 // durable bytes so far; not stored in the records
}

// UploadRecords keeps resumable uploads.
type UploadRecords interface {
	// CreateUpload stores the upload unless its maker has limit unfinished ones already: then rate_limited.
	CreateUpload(ctx context.Context, u Upload, limit int) error
	Upload(ctx context.Context, id string) (Upload, error)
	// ExtendUpload moves the expiry of an unfinished upload.
	ExtendUpload(ctx context.Context, id string, expires time.Time) error
	// FinishUpload makes the revision (see PutFile) and marks the upload finished with it, in one transaction; of two
	// at once one gets fault conflict.
	FinishUpload(ctx context.Context, id string, w FileWrite, check func(current *File) error) (f File, created bool, err error)
	DeleteUpload(ctx context.Context, id string) error
	// ExpiredUploads lists ids of uploads that expired before the instant, oldest first.
	ExpiredUploads(ctx context.Context, before time.Time, limit int) ([]string, error)
}

// NewUpload says what a resumable upload will become.
type NewUpload struct {
	Repository  string
	Path        string
	MediaType   string
	Size        int64
	Digest      string
	IfMatch     string
	IfNoneMatch string
}

// StartUpload begins a resumable upload. It needs Write, now and again when the upload ends.
func (s *Service) StartUpload(ctx context.Context, p identity.Principal, n NewUpload) (Upload, error) {
	if err := CheckRepositoryName("repository", n.Repository); err != nil {
		return Upload{}, err
	}
	if err := CheckPath("path", n.Path); err != nil {
		return Upload{}, err
	}
	media, err := checkMediaType(n.MediaType)
	if err != nil {
		return Upload{}, err
	}
	if n.Size < 0 {
		return Upload{}, fault.Invalid("size", "must not be negative")
	}
	if n.Digest != "" {
		if _, err := ParseDigest("sha256", n.Digest); err != nil {
			return Upload{}, err
		}
	}
	cond, err := parseConditions(n.IfMatch, n.IfNoneMatch)
	if err != nil {
		return Upload{}, err
	}
	if err := s.access.Need(ctx, p, n.Repository, identity.Write); err != nil {
		return Upload{}, err
	}
	if err := s.checkNow(ctx, n.Repository, n.Path, cond); err != nil {
		return Upload{}, err
	}
	now := s.now()
	u := Upload{
		ID: s.cfg.NewID(), Repository: n.Repository, Path: n.Path, MediaType: media, Size: n.Size, Digest: n.Digest,
		IfMatch: n.IfMatch, IfNoneMatch: n.IfNoneMatch, CreatedAt: now, CreatedBy: p.ID, ExpiresAt: now.Add(s.cfg.UploadLife),
	}
	return u, s.records.CreateUpload(ctx, u, s.cfg.UploadsPerCaller)
}

// Upload finds the caller's upload and how far it is. One whose bytes are all there is finished first: whoever sees
// the full offset may rely on the file.
func (s *Service) Upload(ctx context.Context, p identity.Principal, id string) (Upload, error) {
	u, err := s.ownUpload(ctx, p, id)
	if err != nil || u.Revision > 0 || u.Offset < u.Size {
		return u, err
	}
	f, _, err := s.FinishUpload(ctx, p, id)
	u.Revision = f.Revision
	return u, err
}

// ownUpload finds an upload made by p that has not expired, with its offset.
func (s *Service) ownUpload(ctx context.Context, p identity.Principal, id string) (Upload, error) {
	u, err := s.records.Upload(ctx, id)
	if err != nil {
		return Upload{}, err
	}
	if u.CreatedBy != p.ID || !s.now().Before(u.ExpiresAt) {
		return Upload{}, fault.Missing("upload")
	}
	if u.Revision > 0 {
		u.Offset = u.Size
		return u, nil
	}
	u.Offset, err = s.blobs.Offset(ctx, id)
	return u, err
}

// AppendUpload adds what r gives at the offset, which must be the upload's end, and returns the new end. That much is
// durable, also when an error comes with it. One caller at a time per upload.
func (s *Service) AppendUpload(ctx context.Context, p identity.Principal, id string, offset int64, r io.Reader) (end int64, err error) {
	u, err := s.ownUpload(ctx, p, id)
	if err != nil {
		return 0, err
	}
	if u.Revision > 0 || offset != u.Offset {
		return u.Offset, fault.New(fault.Conflict, "the upload is at byte %d, not at %d", u.Offset, offset)
	}
	// The role is asked again at the end; asking it here too stops someone whose role was taken from filling the disk.
	if err := s.access.Need(ctx, p, u.Repository, identity.Write); err != nil {
		return u.Offset, err
	}
	if err := s.records.ExtendUpload(ctx, id, s.now().Add(s.cfg.UploadLife)); err != nil {
		return u.Offset, err
	}
	return s.blobs.Append(ctx, id, offset, io.LimitReader(r, u.Size-offset))
}

// FinishUpload makes the uploaded bytes the path's next revision. Repeating it gives the same file. When the digest or
// a condition doesn't hold the upload is dropped: it can never end well.
func (s *Service) FinishUpload(ctx context.Context, p identity.Principal, id string) (f File, created bool, err error) {
	u, err := s.ownUpload(ctx, p, id)
	if err != nil {
		return File{}, false, err
	}
	if u.Revision > 0 {
		return s.finished(ctx, u)
	}
	if u.Offset != u.Size {
		return File{}, false, fault.New(fault.Conflict, "the upload has %d of %d bytes", u.Offset, u.Size)
	}
	if err := s.access.Need(ctx, p, u.Repository, identity.Write); err != nil {
		return File{}, false, err
	}
	f, created, err = s.finish(ctx, u)
	switch {
	case err == nil:
		// The row stays until it expires, for a client that never got this answer; the leftovers aren't needed.
		// A failed removal is repeated by the sweep.
		_ = s.blobs.Discard(ctx, id)
	case fault.Is(err, fault.IntegrityMismatch), fault.Is(err, fault.PreconditionFails):
		if drop := s.drop(ctx, id); drop != nil {
			return File{}, false, drop
		}
	}
	return f, created, err
}

func (s *Service) finish(ctx context.Context, u Upload) (File, bool, error) {
	digest, size, err := s.blobs.Seal(ctx, u.ID, u.Digest)
	if err != nil {
		return File{}, false, err
	}
	cond, err := parseConditions(u.IfMatch, u.IfNoneMatch)
	if err != nil {
		return File{}, false, err
	}
	w := FileWrite{
		Repository: u.Repository, Path: u.Path, Digest: digest, Size: size, MediaType: u.MediaType, At: s.now(), By: u.CreatedBy,
	}
	return s.records.FinishUpload(ctx, u.ID, w, cond.check)
}

// finished finds the file an upload became.
func (s *Service) finished(ctx context.Context, u Upload) (File, bool, error) {
	page, err := s.records.ListRevisions(ctx, u.Repository, u.Path, u.Revision+1, 1)
	if err != nil {
		return File{}, false, err
	}
	if len(page) == 0 || page[0].Revision != u.Revision {
		return File{}, false, fault.Missing("file")
	}
	return page[0], u.Revision == 1, nil
}

// AbandonUpload drops the caller's unfinished upload; what a finished one made stays.
func (s *Service) AbandonUpload(ctx context.Context, p identity.Principal, id string) error {
	if _, err := s.ownUpload(ctx, p, id); err != nil {
		return err
	}
	return s.drop(ctx, id)
}

// drop removes bytes before the row, so that a crash between leaves a row that the sweep finds.
func (s *Service) drop(ctx context.Context, id string) error {
	if err := s.blobs.Discard(ctx, id); err != nil {
		return err
	}
	return s.records.DeleteUpload(ctx, id)
}
