"""MCP server with tools that return text, an image and a resource, or fail. Standard input and output."""

import json
import sys
from typing import Any

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_NO_ARGUMENTS = {"type": "object", "properties": {}}
_CONTENT = [
    {"type": "text", "text": "The water boils."},
    {"type": "image", "data": PNG, "mimeType": "image/png"},
    {"type": "resource", "resource": {"uri": "file:///x.txt", "mimeType": "text/plain", "text": "Steam."}},
]


def _answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            information = {"name": "kettle", "version": "1"}
            version = params["protocolVersion"]
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": information}
        case "tools/list":
            names = ("boil", "spill", "fail")
            return {
                "tools": [{"name": name, "description": name, "inputSchema": _NO_ARGUMENTS} for name in names]
            }
        case "tools/call" if params["name"] == "fail":
            return {"content": [{"type": "text", "text": "The kettle broke."}], "isError": True}
        case "tools/call" if params["name"] == "spill":
            return {"content": [{"type": "text", "text": "A long line of steam.\n" * 8000}]}
        case "tools/call":
            return {"content": _CONTENT}
    return {}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            result = _answer(message["method"], message.get("params", {}))
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
