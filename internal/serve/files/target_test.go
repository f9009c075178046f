package files

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/fault"
)

func TestTarget(t *testing.T) {
	cases := []struct{ raw, repository, path, field string }{
		{"/files/r/a", "r", "a", ""},
		{"/files/r/a/b%20c.txt", "r", "a/b c.txt", ""},
		{"/files/r/%D1%84%D0%B0%D0%B9%D0%BB", "r", "файл", ""},
		{"/files/r/a+b", "r", "a+b", ""},
		{"/files/r/100%25", "r", "100%", ""},
		{"/files/r/a%252Fb", "r", "a%2Fb", ""},
		{"/files/r/%252e%252e/x", "r", "%2e%2e/x", ""},
		{"/files/r/a;v=1", "r", "a;v=1", ""},
		{"/files/r/...", "r", "...", ""},
		{"/files/r/a%2Fb", "", "", "path"},
		{"/files/r/a%2fb", "", "", "path"},
		{"/files/r/..%2f..%2fetc", "", "", "path"},
		{"/files/r/../x", "", "", "path"},
		{"/files/r/%2e%2e/x", "", "", "path"},
		{"/files/r/./x", "", "", "path"},
		{"/files/r/a//b", "", "", "path"},
		{"/files/r/a/", "", "", "path"},
		{"/files/r//a", "", "", "path"},
		{"/files/r/", "", "", "path"},
		{"/files/r", "", "", "path"},
		{"/files/", "", "", "repository"},
		{"/files/%2E%2E/x", "", "", "repository"},
		{"/files/R/x", "", "", "repository"},
		{"/files/r/a%00b", "", "", "path"},
		{"/files/r/a%0Ab", "", "", "path"},
		{"/files/r/a%5Cb", "", "", "path"},
		{"/files/r/%FF", "", "", "path"},
		{"/files/r/" + strings.Repeat("a", 300), "", "", "path"},
	}
	for _, c := range cases {
		t.Run(c.raw, func(t *testing.T) {
			u, err := url.ParseRequestURI(c.raw)
			if err != nil {
				t.Fatal(err)
			}
			repository, path, err := target(u)
			if c.field != "" {
				f := fault.From(err)
				if err == nil || f.Code != fault.InvalidInput || f.Details[0].Field != c.field {
					t.Errorf("got %q %q %v", repository, path, err)
				}
				return
			}
			if err != nil || repository != c.repository || path != c.path {
				t.Errorf("got %q %q %v", repository, path, err)
			}
		})
	}
}

func FuzzTarget(f *testing.F) {
	f.Add("/files/r/a%2Fb")
	f.Add("/files/r/%25%32%46")
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := url.ParseRequestURI(raw)
		if err != nil {
			return
		}
		repository, path, err := target(u)
		if err != nil {
			return
		}
		if artifacts.CheckPath("path", path) != nil || artifacts.CheckRepositoryName("repository", repository) != nil {
			t.Errorf("%q passed as %q %q", raw, repository, path)
		}
		again := &url.URL{Path: api.PathFiles + repository + "/" + path}
		if r2, p2, err := target(again); err != nil || r2 != repository || p2 != path {
			t.Errorf("%q is %q %q, written again it is %q %q %v", raw, repository, path, r2, p2, err)
		}
	})
}

func TestQueueHeaders(t *testing.T) {
	cases := []struct {
		name, header, value string
		field               string
	}{
		{"id", api.HeaderDownloadID, "A.b_c-9", ""},
		{"longest id", api.HeaderDownloadID, strings.Repeat("x", 64), ""},
		{"id too long", api.HeaderDownloadID, strings.Repeat("x", 65), api.HeaderDownloadID},
		{"empty id", api.HeaderDownloadID, "", api.HeaderDownloadID},
		{"id with space", api.HeaderDownloadID, "a b", api.HeaderDownloadID},
		{"id not ascii", api.HeaderDownloadID, "ä", api.HeaderDownloadID},
		{"class", api.HeaderDownloadClass, "bulk", ""},
		{"unknown class", api.HeaderDownloadClass, "urgent", api.HeaderDownloadClass},
		{"class in capitals", api.HeaderDownloadClass, "Bulk", api.HeaderDownloadClass},
		{"empty class", api.HeaderDownloadClass, "", api.HeaderDownloadClass},
		{"any ticket", api.HeaderQueueTicket, "rubbish", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := readQueueHeaders(http.Header{c.header: {c.value}})
			if c.field == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if f := fault.From(err); err == nil || f.Code != fault.InvalidInput || f.Details[0].Field != c.field {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := readQueueHeaders(http.Header{api.HeaderDownloadID: {"a", "b"}}); err == nil {
		t.Error("two ids were accepted")
	}
	if q, err := readQueueHeaders(http.Header{api.HeaderQueueTicket: {strings.Repeat("1", 9999)}}); err != nil || q.ticket != "" {
		t.Error("a ticket of any length was kept")
	}
}

func FuzzQueueHeaders(f *testing.F) {
	f.Add("id-1", "bulk", "2.a.b.c")
	f.Add("", "", "")
	f.Fuzz(func(t *testing.T, id, class, ticket string) {
		q, err := readQueueHeaders(http.Header{api.HeaderDownloadID: {id}, api.HeaderDownloadClass: {class}, api.HeaderQueueTicket: {ticket}})
		if err == nil && (!validDownloadID(q.id) || q.class != class || len(q.ticket) > maxTicket) {
			t.Errorf("%q %q %q passed as %+v", id, class, ticket, q)
		}
	})
}
