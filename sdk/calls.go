package sdk

import (
	"bytes"
	"context"
	"io"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/roadstead/roadstead/api"
)

const apiRoot = "/api/v1/"

// Whoami tells who the key belongs to.
func (c *Client) Whoami(ctx context.Context) (out api.Whoami, err error) {
	err = c.call(ctx, http.MethodGet, c.at(apiRoot+"whoami", nil), nil, &out)
	return out, err
}

// Queue is the operator's view of the download queue (D-11.2).
func (c *Client) Queue(ctx context.Context) (out api.Queue, err error) {
	err = c.call(ctx, http.MethodGet, c.at(apiRoot+"system/downloads/queue", nil), nil, &out)
	return out, err
}

// FileURL is the address of a file's bytes.
func (c *Client) FileURL(repository, path string) string {
	return c.at(api.PathFiles+url.PathEscape(repository)+"/"+escapePath(path), nil)
}

// Head is what the server says of an object without sending it; it takes no place in the queue (D-2.6).
type Head struct {
	Name      string // file name the server suggests; may be empty, and is foreign text
	Size      int64  // -1: not said
	Digest    string // sha256:<hex>, or empty
	MediaType string
}

// Head asks about the object at an address, such as FileURL or a share link.
func (c *Client) Head(ctx context.Context, address string) (out Head, err error) {
	op := c.operation(callRetry(c.retry, http.MethodHead), nil)
	err = op.attempt(ctx, func(ctx context.Context) error {
		actx, cancel := context.WithTimeout(ctx, c.retry.AttemptTimeout)
		defer cancel()
		req, err := c.request(actx, http.MethodHead, address, nil)
		if err != nil {
			return err
		}
		req.Header.Set("Accept-Encoding", "identity")
		resp, err := c.http.Do(req)
		if err != nil {
			return broken(err)
		}
		defer drain(resp.Body)
		if resp.StatusCode >= 300 {
			return refusal(resp, c.clock.Wall())
		}
		out = Head{Size: resp.ContentLength, Digest: answerDigest(resp.Header), MediaType: resp.Header.Get("Content-Type")}
		if _, params, err := mime.ParseMediaType(resp.Header.Get("Content-Disposition")); err == nil {
			out.Name = params["filename"]
		}
		return nil
	})
	return out, err
}

// DeleteFile removes a path; earlier links to it end with it.
func (c *Client) DeleteFile(ctx context.Context, repository, path string) error {
	return c.call(ctx, http.MethodDelete, c.FileURL(repository, path), nil, nil)
}

// Repositories lists the repositories the caller may see.
func (c *Client) Repositories(ctx context.Context) iter.Seq2[api.Repository, error] {
	return pages[api.Repository](ctx, c, "repositories", nil)
}

// CreateRepository makes a repository in the caller's tenant.
func (c *Client) CreateRepository(ctx context.Context, name string) (out api.Repository, err error) {
	in := struct {
		Name string `json:"name"`
	}{name}
	err = c.call(ctx, http.MethodPost, c.at(apiRoot+"repositories", nil), in, &out)
	return out, err
}

// Grant gives an account a role (read, write, admin) on a repository.
func (c *Client) Grant(ctx context.Context, repository, account, role string) error {
	in := struct {
		Role string `json:"role"`
	}{role}
	return c.call(ctx, http.MethodPut, c.grantURL(repository, account), in, nil)
}

// RevokeGrant takes an account's role on a repository away.
func (c *Client) RevokeGrant(ctx context.Context, repository, account string) error {
	return c.call(ctx, http.MethodDelete, c.grantURL(repository, account), nil, nil)
}

func (c *Client) grantURL(repository, account string) string {
	return c.at(apiRoot+"repositories/"+url.PathEscape(repository)+"/grants/"+url.PathEscape(account), nil)
}

// Files lists a repository's files whose path begins with prefix, in path order.
func (c *Client) Files(ctx context.Context, repository, prefix string) iter.Seq2[api.File, error] {
	query := url.Values{}
	if prefix != "" {
		query.Set("prefix", prefix)
	}
	return pages[api.File](ctx, c, "repositories/"+url.PathEscape(repository)+"/files", query)
}

// Revisions lists what a path has held, newest first.
func (c *Client) Revisions(ctx context.Context, repository, path string) iter.Seq2[api.File, error] {
	return pages[api.File](ctx, c, "repositories/"+url.PathEscape(repository)+"/revisions", url.Values{"path": {path}})
}

// Links lists the share links the caller may see.
func (c *Client) Links(ctx context.Context, repository string) iter.Seq2[api.ShareLink, error] {
	query := url.Values{}
	if repository != "" {
		query.Set("repository", repository)
	}
	return pages[api.ShareLink](ctx, c, "links", query)
}

// CreateLink makes a share link to a path's current revision; its URL is only in this answer. Zero expires: the
// server's default.
func (c *Client) CreateLink(ctx context.Context, repository, path string, expires time.Duration) (out api.ShareLink, err error) {
	in := struct {
		Repository string `json:"repository"`
		Path       string `json:"path"`
		ExpiresIn  int64  `json:"expiresIn,omitempty"`
	}{repository, path, int64(expires / time.Second)}
	err = c.call(ctx, http.MethodPost, c.at(apiRoot+"links", nil), in, &out)
	return out, err
}

// RevokeLink ends a share link.
func (c *Client) RevokeLink(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, c.at(apiRoot+"links/"+url.PathEscape(id), nil), nil, nil)
}

// pages walks a listing page by page; iteration ends at the first error, which comes with a zero item.
func pages[T any](ctx context.Context, c *Client, path string, query url.Values) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		q := url.Values{"limit": {strconv.Itoa(1000)}}
		for k, v := range query {
			q[k] = v
		}
		for {
			var page api.Page[T]
			if err := c.call(ctx, http.MethodGet, c.at(apiRoot+path, q), nil, &page); err != nil {
				var zero T
				yield(zero, err)
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			if page.Next == "" || page.Next == q.Get("after") { // a cursor that stands still would never end
				return
			}
			q.Set("after", page.Next)
		}
	}
}

// buffer replaces a small body by a copy in memory and frees the connection.
func buffer(resp *http.Response) error {
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(raw))
	if err != nil {
		return broken(err)
	}
	return nil
}
