"""HTTP server in place of the model, on a Unix socket."""

import json
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from tests.judge.blocks import Block
from tests.judge.script import Exchange, Failure, Reply, Script


@contextmanager
def serve(script: Script, path: Path) -> Iterator[None]:
    """Answer requests on a socket as scripted."""

    class Handler(_Handler):
        model = script

    class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
        daemon_threads = True
        request_queue_size = 64

    with Server(str(path), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: Script

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def address_string(self) -> str:
        return "unix"

    def do_HEAD(self) -> None:
        self._send(200, "application/json", b"")

    def do_GET(self) -> None:
        self._send(404, "application/json", b"{}")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if "/v1/messages" not in self.path:
            return self._send(200, "application/json", b"{}")
        if "count_tokens" in self.path:
            return self._send(200, "application/json", b'{"input_tokens": 100}')
        request = json.loads(body)
        answer = self.model.answer(request)
        try:
            if isinstance(answer, Failure):
                return self._send_failure(answer)
            exchange, reply = answer
            time.sleep(reply.delay_seconds)
            if request.get("stream"):
                return self._stream(exchange, reply)
            self._send(200, "application/json", json.dumps(_message(exchange)).encode())
            exchange.is_sent = True
        except (BrokenPipeError, ConnectionResetError):  # the tool was interrupted
            self.close_connection = True

    def _send(self, status: int, kind: str, data: bytes, headers: tuple[tuple[str, str], ...] = ()) -> None:
        self.send_response(status)
        for name, value in (("content-type", kind), ("content-length", str(len(data))), *headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _send_failure(self, failure: Failure) -> None:
        error = {"type": "error", "error": {"type": failure.kind, "message": failure.message}}
        self._send(failure.status, "application/json", json.dumps(error).encode(), failure.headers)

    def _stream(self, exchange: Exchange, reply: Reply) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("request-id", f"req_{exchange.response_id}")
        self.send_header("connection", "close")
        self.end_headers()
        sent_chars = 0
        for name, event in _events(exchange, reply.chunk_chars):
            self.wfile.write(f"event: {name}\ndata: {json.dumps({'type': name} | event)}\n\n".encode())
            self.wfile.flush()
            if event.get("delta", {}).get("type") == "text_delta":
                sent_chars += len(event["delta"]["text"])
                time.sleep(reply.chunk_delay_seconds)
                if reply.cut_after_chars is not None and sent_chars >= reply.cut_after_chars:
                    return
        exchange.is_sent = True


def _message(exchange: Exchange) -> dict[str, Any]:
    return {
        "id": exchange.response_id,
        "type": "message",
        "role": "assistant",
        "model": exchange.model,
        "content": exchange.blocks,
        "stop_reason": exchange.stop_reason,
        "stop_sequence": None,
        "usage": exchange.usage,
    }


def _events(exchange: Exchange, chunk_chars: int) -> Iterator[tuple[str, dict[str, Any]]]:
    start = _message(exchange) | {"content": [], "stop_reason": None}
    yield "message_start", {"message": start | {"usage": exchange.usage | {"output_tokens": 1}}}
    for index, block in enumerate(exchange.blocks):
        empty, deltas = _parts(block, chunk_chars)
        yield "content_block_start", {"index": index, "content_block": empty}
        for delta in deltas:
            yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}
    end = {"stop_reason": exchange.stop_reason, "stop_sequence": None}
    yield "message_delta", {"delta": end, "usage": {"output_tokens": exchange.usage["output_tokens"]}}
    yield "message_stop", {}


def _parts(block: Block, chunk_chars: int) -> tuple[Block, list[Block]]:
    """Return a block as it begins, and what is added to it."""
    match block["type"]:
        case "text":
            words = block["text"]
            chunks = [words[at : at + chunk_chars] for at in range(0, len(words), chunk_chars)]
            return block | {"text": ""}, [{"type": "text_delta", "text": chunk} for chunk in chunks]
        case "thinking":
            words = [{"type": "thinking_delta", "thinking": block["thinking"]}] if block["thinking"] else []
            signature = {"type": "signature_delta", "signature": block["signature"]}
            return block | {"thinking": "", "signature": ""}, [*words, signature]
        case "tool_use" | "server_tool_use":
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            return block | {"input": {}}, [delta]
        case _:
            return block, []
