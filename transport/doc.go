// Package transport is how clients reach the server: over stdio, streamable HTTP and
// SSE. It lets nobody in who shouldn't be, tells the tools who is calling, and at the
// end lets what is under way finish. Of operations it knows nothing.
package transport
