package serve

import (
	"io"
	"net/http"
)

// recorder notes status and bytes of an answer for the access log. It passes ReadFrom on: without that, net/http
// would silently copy every file through memory instead of using sendfile.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// WriteHeader notes the final status; interim ones pass by.
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	w.begin()
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// ReadFrom hands the source to the writer below, which knows how to sendfile.
func (w *recorder) ReadFrom(src io.Reader) (n int64, err error) {
	w.begin()
	if below, ok := w.ResponseWriter.(io.ReaderFrom); ok {
		n, err = below.ReadFrom(src)
	} else {
		n, err = io.Copy(struct{ io.Writer }{w.ResponseWriter}, src)
	}
	w.bytes += n
	return n, err
}

// FlushError sends what is buffered.
func (w *recorder) FlushError() error {
	w.begin()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Flush is FlushError for callers that know only the old interface.
func (w *recorder) Flush() { _ = w.FlushError() }

// Unwrap lets http.ResponseController reach deadlines and full duplex.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *recorder) begin() {
	if w.status == 0 {
		w.status = http.StatusOK
	}
}
