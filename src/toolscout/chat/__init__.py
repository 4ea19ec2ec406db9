"""The chat APIs: the names they accept, the definitions they want, the calls their models answer with."""

from toolscout.chat.calls import read_tool_call
from toolscout.chat.forms import anthropic_tool, openai_tool
from toolscout.chat.names import model_name, model_names
from toolscout.chat.schemas import own_arguments, plain_schema

__all__ = [
    "anthropic_tool",
    "model_name",
    "model_names",
    "openai_tool",
    "own_arguments",
    "plain_schema",
    "read_tool_call",
]
