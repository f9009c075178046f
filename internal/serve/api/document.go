package api

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/roadstead/roadstead/api"
)

// describeBytes adds the routes that carry file contents to the document; they are no JSON operations, so nothing
// generates them.
func describeBytes(doc *huma.OpenAPI) {
	repository := parameter("path", "repository", "")
	path := parameter("path", "path", "May hold slashes; everything else that is not a letter, digit or one of -._~ is percent-encoded, once.")
	download := []*huma.Param{
		parameter("header", "Range", "One range of bytes, or several (bounded)."), parameter("header", "If-Range", ""), parameter("header", "If-None-Match", ""),
		parameter("header", api.HeaderDownloadID, "One per download, made by the client: 1 to 64 of A-Z a-z 0-9 . _ -"),
		parameter("header", api.HeaderDownloadClass, "interactive, release, bulk or background; may only lower the class."),
		parameter("header", api.HeaderQueueTicket, "The latest ticket the server gave for this download."),
	}
	upload := []*huma.Param{
		parameter("header", "If-Match", ""), parameter("header", "If-None-Match", "* makes the upload fail if the file exists."),
		parameter("header", "Repr-Digest", "sha-256 of the content; a mismatch is refused."),
	}
	file := api.PathFiles + "{repository}/{path}"
	fileParams := []*huma.Param{repository, path}
	for _, op := range []*huma.Operation{
		{Method: "PUT", Path: file, OperationID: "putFile", Summary: "Store the request's body as the next revision of a file", Parameters: append(fileParams, upload...), Responses: answers("200", "201", "400", "404", "412", "422", "507")},
		{Method: "GET", Path: file, OperationID: "getFile", Summary: "Download a file", Parameters: append(fileParams, download...), Responses: answers("200", "206", "304", "400", "404", "416", "503")},
		{Method: "DELETE", Path: file, OperationID: "deleteFile", Summary: "Delete a file; its earlier revisions stay listed", Parameters: append(fileParams, upload[:2]...), Responses: answers("204", "404", "412")},
		{Method: "GET", Path: prefix + "/repositories/{repository}/objects/{digest}", OperationID: "getObject", Summary: "Download an object by its digest, sha256:<hex>", Parameters: append([]*huma.Param{repository, parameter("path", "digest", "")}, download...), Responses: answers("200", "206", "304", "400", "404", "416", "503")},
		{Method: "GET", Path: api.PathLinks + "{token}", OperationID: "getLink", Summary: "Download the file of a share link; needs no API key", Parameters: append([]*huma.Param{parameter("path", "token", "")}, download...), Responses: answers("200", "206", "304", "404", "416", "503"), Security: []map[string][]string{}},
		{Method: "POST", Path: api.PathUploads, OperationID: "startUpload", Summary: "Begin a resumable upload (tus 1.0)", Responses: answers("201", "400", "404", "507")},
	} {
		doc.AddOperation(op)
	}
}

func parameter(in, name, words string) *huma.Param {
	return &huma.Param{In: in, Name: name, Description: words, Required: in == "path", Schema: &huma.Schema{Type: huma.TypeString}}
}

func answers(codes ...string) map[string]*huma.Response {
	text := map[string]int{
		"200": 200, "201": 201, "204": 204, "206": 206, "304": 304, "400": 400, "404": 404, "412": 412, "416": 416, "422": 422, "503": 503, "507": 507,
	}
	out := map[string]*huma.Response{}
	for _, c := range codes {
		r := &huma.Response{Description: http.StatusText(text[c])}
		if text[c] >= 400 {
			r.Content = map[string]*huma.MediaType{"application/problem+json": {Schema: &huma.Schema{Ref: "#/components/schemas/Problem"}}}
		}
		out[c] = r
	}
	return out
}
