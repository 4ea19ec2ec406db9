"""Calls an author's code, synchronous or asynchronous, within a deadline, and turns its values into MCP results."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import threading
from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata
    from mcp_types import CallToolResult, InputRequiredResult

_GRACE = 10


class OverdueError(TimeoutError):
    """The deadline passed. The call may still run, but nobody waits for it."""


def is_async(call: Callable[..., Any]) -> bool:
    """Tell whether a call returns a coroutine or an asynchronous iterator, without doing any work itself."""
    while isinstance(call, functools.partial):
        call = call.func
    if not (inspect.isfunction(call) or inspect.ismethod(call)):
        call = getattr(call, "__call__", call)  # noqa: B004 - the method itself is needed
    return inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call)


async def ask(call: Callable[[], Any], timeout_s: float | None, *, most: int | None = None) -> Any:
    """Return the value of `call`. Raise OverdueError after the timeout, even when the call ignores its cancellation.

    With `most`, the value is read into a list of at most so many items, in the thread that made it: a generator may
    block, and may never end.
    """
    if timeout_s is None:
        return await _answer(call, most)
    task = asyncio.ensure_future(_answer(call, most))
    try:
        await asyncio.wait({task}, timeout=timeout_s)
        for _ in range(_GRACE):
            if task.done():
                return task.result()
            await asyncio.sleep(0)  # the loop was busy: an answer that has arrived is in time
        raise OverdueError(f"no answer within {timeout_s:g} s")
    finally:
        if not task.done():
            _abandon(task)


def to_result(value: Any, *, structured: bool = False) -> CallToolResult | InputRequiredResult:
    """Turn a value into an MCP result, as the SDK does. With `structured`, a mapping is its structured content too."""
    from mcp_types import CallToolResult

    if hasattr(value, "to_mcp_result"):
        value = value.to_mcp_result()
        if isinstance(value, tuple):
            return CallToolResult(content=list(value[0]), structured_content=value[1])
    if isinstance(value, Mapping) and isinstance(value.get("content"), list) and "type" not in value:
        return CallToolResult.model_validate(dict(value))
    result = _without_schema().convert_result(value)
    if structured and isinstance(result, CallToolResult) and isinstance(value, Mapping):
        return result.model_copy(update={"structured_content": dict(value)})
    return result


async def in_thread(call: Callable[[], Any]) -> Any:
    """Run a blocking call in a thread of its own, in the caller's context.

    A few calls that hang would fill the loop's thread pool for everybody, and keep the process from exiting. A thread
    that is abandoned here ends with its call, or with the process.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: Any, error: BaseException | None) -> None:
        if future.cancelled():
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    def work() -> None:
        value, error = None, None
        try:
            value = context.run(call)
        except Exception as raised:  # noqa: BLE001 - raised again in the task that waits
            error = RuntimeError("it raised StopIteration") if isinstance(raised, StopIteration) else raised
        except BaseException as raised:  # noqa: BLE001 - an author's code must not end the process
            error = RuntimeError(f"it raised {type(raised).__name__}")
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=work, name="toolscout-provider", daemon=True).start()
    return await future


@functools.cache
def _without_schema() -> FuncMetadata:
    """Return the SDK's converter of values, for a tool without an output schema."""
    from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata

    return FuncMetadata(arg_model=ArgModelBase)


async def _answer(call: Callable[[], Any], most: int | None) -> Any:
    value = call() if is_async(call) else await in_thread(lambda: _read_items(call(), most))
    if inspect.isawaitable(value):
        value = await value
    if most is None or not isinstance(value, AsyncIterable):
        return _read_items(value, most)
    items: list[Any] = []
    async for item in value:
        items.append(item)
        if len(items) >= most:
            break
    return items


def _read_items(value: Any, most: int | None) -> Any:
    if most is None or inspect.isawaitable(value) or isinstance(value, AsyncIterable):
        return value
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise TypeError(f"expected a list, not {type(value).__name__}")
    return list(islice(value, most))


def _abandon(task: asyncio.Future[Any]) -> None:
    task.cancel()
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
