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
	err = c.call(ctx, http.MethodPost, c.at(apiRoot+"repositories", nil), api.NewRepository{Name: name}, &out)
	return out, err
}

// DeleteRepository removes an empty repository.
func (c *Client) DeleteRepository(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, c.repositoryURL(name, ""), nil, nil)
}

// Grants lists who has which role on a repository.
func (c *Client) Grants(ctx context.Context, repository string) iter.Seq2[api.Grant, error] {
	return pages[api.Grant](ctx, c, "repositories/"+url.PathEscape(repository)+"/grants", nil)
}

// Grant gives an account exactly this role (read, write, admin) on a repository.
func (c *Client) Grant(ctx context.Context, repository, account, role string) error {
	return c.call(ctx, http.MethodPut, c.repositoryURL(repository, "/grants/"+url.PathEscape(account)), api.GrantRole{Role: role}, nil)
}

// RevokeGrant takes an account's role on a repository away.
func (c *Client) RevokeGrant(ctx context.Context, repository, account string) error {
	return c.call(ctx, http.MethodDelete, c.repositoryURL(repository, "/grants/"+url.PathEscape(account)), nil, nil)
}

func (c *Client) repositoryURL(repository, rest string) string {
	return c.at(apiRoot+"repositories/"+url.PathEscape(repository)+rest, nil)
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

// Links lists the share links of a repository.
func (c *Client) Links(ctx context.Context, repository string) iter.Seq2[api.ShareLink, error] {
	return pages[api.ShareLink](ctx, c, "repositories/"+url.PathEscape(repository)+"/links", nil)
}

// CreateLink makes a share link to a path's current revision; its URL is only in this answer. Zero expires: never.
func (c *Client) CreateLink(ctx context.Context, repository, path string, expires time.Duration) (out api.ShareLink, err error) {
	in := api.NewLink{Path: path, ExpiresAt: c.expiry(expires)}
	err = c.call(ctx, http.MethodPost, c.repositoryURL(repository, "/links"), in, &out)
	return out, err
}

// RevokeLink ends a share link.
func (c *Client) RevokeLink(ctx context.Context, repository, id string) error {
	return c.call(ctx, http.MethodDelete, c.repositoryURL(repository, "/links/"+url.PathEscape(id)), nil, nil)
}

// expiry is the instant after which something made now ends; zero: never.
func (c *Client) expiry(after time.Duration) *time.Time {
	if after <= 0 {
		return nil
	}
	at := c.clock.Wall().Add(after).UTC().Truncate(time.Second)
	return &at
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
