"""An MCP server of the handshake era that misbehaves on request: JSON-RPC over standard input and output, no SDK.

    python fake_server.py LOG [--start never|slow|exit] [--tools N] [--names A,B] [--endless] [--family]

Every received message is first appended to LOG. The name of the called tool selects the fault. When the server does not
answer a call, it still reads and logs later messages.
"""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

LOG = Path(sys.argv[1])
OPTIONS = sys.argv[2:]
OUT = sys.stdout.buffer
LOCK = threading.Lock()
WAITING: dict[Any, Any] = {}
STATE = {"tools": int(OPTIONS[OPTIONS.index("--tools") + 1]) if "--tools" in OPTIONS else 1, "questions": 1000}


def record(message):
    with LOG.open("ab", buffering=0) as log:
        log.write(json.dumps(message).encode() + b"\n")


def write(data):
    with LOCK:
        OUT.write(data)
        OUT.flush()


def send(message):
    write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def answer(request, text="ok", **more):
    send({"id": request, "result": {"content": [{"type": "text", "text": text}], **more}})


def drip(request):
    line = json.dumps({"jsonrpc": "2.0", "id": request, "result": {"content": []}}).encode() + b"\n"
    with LOCK:
        for byte in line:
            OUT.write(bytes([byte]))
            OUT.flush()
            time.sleep(1)


def huge(request, size, *, id_last):
    """Stream one answer of `size` bytes, its id first (as Python servers write it) or last (as TypeScript ones do)."""
    with LOCK:
        OUT.write(b'{"jsonrpc":"2.0",' if id_last else b'{"jsonrpc":"2.0","id":%d,' % request)
        OUT.write(b'"result":{"content":[{"type":"text","text":"')
        part = b"x" * (1 << 20)
        for _ in range(size // len(part)):
            OUT.write(part)
        OUT.write(b'"}]},"id":%d}\n' % request if id_last else b'"}]}}\n')
        OUT.flush()


def ask(request, params):
    """Ask the agent a question and return its reply as the result."""
    STATE["questions"] += 1
    question = STATE["questions"]
    WAITING[question] = lambda reply: answer(request, json.dumps(reply.get("result") or reply.get("error")))
    send({"id": question, "method": params["method"], "params": params.get("params", {})})


def ask_many(request, count):
    """Ask questions that overlap, and return how many were refused once all are answered."""
    replies = []

    def collect(reply):
        replies.append(reply)
        if len(replies) == count:
            answer(request, str(sum("error" in item for item in replies)))

    for _ in range(count):
        STATE["questions"] += 1
        WAITING[STATE["questions"]] = collect
        send({"id": STATE["questions"], "method": "elicitation/create", "params": {}})


def call(request, name, arguments, meta):
    if name == "echo":
        answer(request, arguments.get("text", "ok"))
    elif name == "later":
        threading.Timer(arguments["seconds"], answer, [request]).start()
    elif name == "crash_before":
        os._exit(3)
    elif name == "crash_during":
        write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[' % request)
        os._exit(3)
    elif name == "crash_after":
        answer(request)
        os._exit(3)
    elif name == "drip":
        threading.Thread(target=drip, args=[request], daemon=True).start()
    elif name == "garbage":
        write(b'Welcome!\n\n\xff\xfe\x00binary\n{"half": \n[1,2]\n{"jsonrpc":"2.0"}\nnull\n' + b"[" * 100_000 + b"\n")
        write(b'{"jsonrpc":"2.0","id":%d,' % request)
        write(b'"result":{"content":[{"type":"text","text":"after"}]}}\n')
    elif name == "huge":
        huge(request, arguments["bytes"], id_last=arguments.get("id_last", False))
    elif name == "endless":
        with LOCK:
            while True:
                OUT.write(b"y" * 65_536)
    elif name == "change":
        STATE["tools"] += 1
        send({"method": "notifications/tools/list_changed"})
        answer(request)
    elif name == "refuse_list":
        STATE["refusals"] = 1
        answer(request)
    elif name == "storm":
        line = json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}).encode() + b"\n"
        for _ in range(arguments["count"]):
            write(line)
        answer(request)
    elif name == "progress":
        for step in range(3):
            send(
                {
                    "method": "notifications/progress",
                    "params": {"progressToken": meta["progressToken"], "progress": step, **arguments},
                }
            )
        threading.Timer(0.05, answer, [request]).start()
    elif name == "ask":
        ask(request, arguments)
    elif name == "ask_many":
        ask_many(request, arguments["count"])
    elif name == "error":
        send({"id": request, "error": {"code": -32050, "message": "no such thing", "data": {"why": "because"}}})
    elif name == "error_32000":
        send({"id": request, "error": {"code": -32000, "message": arguments["text"]}})
    elif name == "long_error":
        send({"id": request, "error": {"code": -32050, "message": "m" * 500_000, "data": ["d" * 500_000]}})
    elif name == "quote_secret":
        secret = os.environ["API_TOKEN"]
        sys.stderr.write(f"logging in with {secret}\n")
        sys.stderr.flush()
        send({"id": request, "error": {"code": -32050, "message": f"bad {secret}", "data": {secret: [secret]}}})
    elif name == "is_error":
        answer(request, "it failed", isError=True)
    elif name == "vendor":
        result = {"content": [{"type": "future", "z": None}], "vendor": {"a": None}, "_meta": {"m": 1}}
        send({"id": request, "result": {**result, "structuredContent": {"n": None}}})
    elif name == "environment":
        answer(request, json.dumps(dict(os.environ)))
    elif name == "arguments":
        answer(request, json.dumps(sys.argv))
    elif name == "where":
        answer(request, str(Path.cwd()))
    elif name == "grandchild":
        new_session = arguments.get("setsid", False)
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=new_session)
        answer(request, str(child.pid))
    elif name == "stubborn":
        import signal

        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        STATE["stubborn"] = True
        answer(request, str(os.getpid()))
    elif name == "stderr":
        sys.stderr.write("line\n" * arguments["lines"] + "the last words\n")
        sys.stderr.flush()
        answer(request)
    elif name == "deaf":
        time.sleep(600)
    # "hang" and all other names are never answered


def list_tools(params):
    page = int((params or {}).get("cursor", 0))
    if "--endless" in OPTIONS:
        tool = {"name": f"tool{page}", "inputSchema": {"type": "object"}}
        return {"tools": [tool], "nextCursor": str(page + 1)}
    names = OPTIONS[OPTIONS.index("--names") + 1].split(",") if "--names" in OPTIONS else []
    names += [f"tool{n}" for n in range(STATE["tools"])]
    tools = [{"name": name, "inputSchema": {"type": "object", "default": None}} for name in names]
    part = tools[page * 100 : page * 100 + 100]
    more = {"nextCursor": str(page + 1)} if len(tools) > page * 100 + 100 else {}
    return {"tools": part, **more}


def handle(message):
    request, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    if method is None:
        WAITING.pop(request, lambda reply: None)(message)
    elif method == "initialize":
        if "slow" in OPTIONS:
            time.sleep(1.5)
        capabilities = {"tools": {"listChanged": True}}
        info = {"name": "fake", "version": "1"}
        send(
            {
                "id": request,
                "result": {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info},
            }
        )
    elif method == "tools/list":
        if STATE.pop("refusals", 0):
            send({"id": request, "error": {"code": -32603, "message": "not now"}})
        else:
            send({"id": request, "result": list_tools(params)})
    elif method == "tools/call":
        call(request, params["name"], params.get("arguments") or {}, params.get("_meta") or {})
    elif method == "ping":
        send({"id": request, "result": {}})
    elif request is not None:
        send({"id": request, "error": {"code": -32601, "message": "Method not found"}})


def main():
    record({"started": os.getpid()})
    if "--family" in OPTIONS:
        for new_session in (False, True):
            child = subprocess.Popen(
                [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=new_session
            )
            record({"started": child.pid})
    if "--hidden" in OPTIONS:
        # A process in its own session, without an environment, whose parent has ended.
        sleeper = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"]
        options = "env={}, stdout=subprocess.DEVNULL, start_new_session=True"
        hide = f"import subprocess; print(subprocess.Popen({sleeper!r}, {options}).pid)"
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stdin": subprocess.DEVNULL}
        hidden = subprocess.run([sys.executable, "-I", "-S", "-c", hide], env={}, **pipes)
        record({"started": int(hidden.stdout)})
    if "exit" in OPTIONS:
        sys.stderr.write("cannot find my settings\n")
        sys.exit(4)
    for line in sys.stdin.buffer:
        message = json.loads(line)
        record(message)
        if "never" not in OPTIONS:
            handle(message)
    if STATE.get("stubborn"):
        time.sleep(600)


if __name__ == "__main__":
    main()
