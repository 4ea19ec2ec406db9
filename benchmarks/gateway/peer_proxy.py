"""FastMCP's proxy in front of the echo server, for comparison: `peer_proxy.py CONFIG [PORT]`."""

import json
import sys
from pathlib import Path

config = json.loads(Path(sys.argv[1]).read_text("utf-8"))
try:
    from fastmcp.server import create_proxy
except ImportError:
    from fastmcp import FastMCP

    create_proxy = FastMCP.as_proxy
proxy = create_proxy(config, name="proxy")
if len(sys.argv) > 2:
    proxy.run(transport="http", host="127.0.0.1", port=int(sys.argv[2]), show_banner=False, log_level="ERROR")
else:
    proxy.run(show_banner=False, log_level="ERROR")
