package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// A wire carries one client's messages to a server, and the answers back. Messages
// follow one another: the next one is sent when the last one is answered.
type wire interface {
	// exchange sends a request and returns its answer.
	exchange(ctx context.Context, message []byte, header http.Header) ([]byte, error)
	// notify sends what gets no answer.
	notify(ctx context.Context, message []byte, header http.Header) error
}

// maxAnswer is more than any answer of these tests has, in bytes.
const maxAnswer = 4 << 20

// readLinesOf yields what r has, line by line, until it ends.
func readLinesOf(r io.Reader) <-chan []byte {
	lines := make(chan []byte, 1024)
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, maxAnswer)
	go func() {
		defer close(lines)
		for scanner.Scan() {
			lines <- bytes.Clone(scanner.Bytes())
		}
	}()
	return lines
}

func nextLine(ctx context.Context, lines <-chan []byte) ([]byte, error) {
	select {
	case line, ok := <-lines:
		if !ok {
			return nil, io.ErrUnexpectedEOF
		}
		return line, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("no answer: %w", ctx.Err())
	}
}

// A stdioWire is a server's standard input and output.
type stdioWire struct {
	in  io.Writer
	out <-chan []byte
}

func (w stdioWire) exchange(ctx context.Context, message []byte, _ http.Header) ([]byte, error) {
	if err := w.notify(ctx, message, nil); err != nil {
		return nil, err
	}
	return nextLine(ctx, w.out)
}

func (w stdioWire) notify(_ context.Context, message []byte, _ http.Header) error {
	_, err := w.in.Write(append(bytes.Clone(message), '\n'))
	return err
}

// A postWire is streamable HTTP: every message is a POST, and its answer the response.
type postWire struct {
	client  *http.Client
	url     string
	session string // of the older revisions, once the server has named it
}

func (w *postWire) exchange(ctx context.Context, message []byte, header http.Header) ([]byte, error) {
	status, body, err := w.post(ctx, message, header)
	if err != nil {
		return nil, err
	}
	if data, ok := bytes.CutPrefix(body, []byte("event: message\ndata: ")); ok {
		body = data
	}
	if !json.Valid(bytes.TrimSpace(body)) {
		return nil, fmt.Errorf("status %d, and no JSON: %.200q", status, body)
	}
	return body, nil
}

func (w *postWire) notify(ctx context.Context, message []byte, header http.Header) error {
	status, body, err := w.post(ctx, message, header)
	if err == nil && status != http.StatusAccepted {
		err = fmt.Errorf("a notification got status %d: %.200q", status, body)
	}
	return err
}

func (w *postWire) post(ctx context.Context, message []byte, header http.Header) (int, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(message))
	if err != nil {
		return 0, nil, err
	}
	r.Header = header.Clone()
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if w.session != "" {
		r.Header.Set("Mcp-Session-Id", w.session)
	}
	response, err := w.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	if id := response.Header.Get("Mcp-Session-Id"); id != "" {
		w.session = id
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return response.StatusCode, body, err
}

// An sseWire is the older HTTP transport: messages are posted, answers come on a stream.
type sseWire struct {
	post   postWire
	events <-chan []byte
}

// dialSSE opens the stream and learns where to post. The stream ends with ctx.
func dialSSE(ctx context.Context, client *http.Client, base string, header http.Header) (*sseWire, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/sse", nil)
	if err != nil {
		return nil, err
	}
	r.Header = header.Clone()
	response, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("GET /sse: status %d", response.StatusCode), response.Body.Close())
	}
	context.AfterFunc(ctx, func() { response.Body.Close() })
	data := make(chan []byte, 1024)
	lines := readLinesOf(response.Body)
	go func() {
		defer close(data)
		for line := range lines {
			if text, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
				data <- text
			}
		}
	}()
	endpoint, err := nextLine(ctx, data)
	if err != nil || !strings.HasPrefix(string(endpoint), "/message") {
		return nil, fmt.Errorf("the stream began with %q, %w", endpoint, err)
	}
	return &sseWire{post: postWire{client: client, url: base + string(endpoint)}, events: data}, nil
}

func (w *sseWire) exchange(ctx context.Context, message []byte, header http.Header) ([]byte, error) {
	status, body, err := w.post.post(ctx, message, header)
	if err != nil {
		return nil, err
	}
	if status != http.StatusAccepted {
		if json.Valid(bytes.TrimSpace(body)) {
			return body, nil // refused before it was a message of the stream's
		}
		return nil, fmt.Errorf("status %d: %.200q", status, body)
	}
	return nextLine(ctx, w.events)
}

func (w *sseWire) notify(ctx context.Context, message []byte, header http.Header) error {
	return w.post.notify(ctx, message, header)
}
