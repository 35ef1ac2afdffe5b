"""HTTP/1.1 on a connection, as uvicorn reads it: with long queries too, and JSON for what is no request."""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.edge.errors import rendered

PARSED_BYTES = 65_535
"""The parser of URLs counts in 16 bits; what a person pastes into a search may be longer."""
LONGEST_URL_BYTES = 1024 * 1024


class Wire(HttpToolsProtocol):
    def on_headers_complete(self) -> None:
        path, _, query = self.url.partition(b"?")
        is_long = PARSED_BYTES < len(self.url) <= LONGEST_URL_BYTES
        if is_long:
            self.url = path
        super().on_headers_complete()
        if is_long:  # in time: the request's task begins after this
            self.scope["query_string"] = query

    def send_400_response(self, msg: str) -> None:
        answer = rendered(400, f"{msg} Send HTTP/1.1, with a URL of at most {LONGEST_URL_BYTES} bytes.")
        head = [b"HTTP/1.1 400 Bad Request", *(b": ".join(header) for header in answer.raw_headers)]
        self.transport.write(b"\r\n".join([*head, b"connection: close", b"", bytes(answer.body)]))
        self.transport.close()
