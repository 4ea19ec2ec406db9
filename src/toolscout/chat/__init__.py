"""The chat APIs of OpenAI and Anthropic: tool names, definitions and schemas that they accept, and their tool calls."""

from toolscout.chat.definitions import anthropic_tool, definition_tokens, openai_tool
from toolscout.chat.names import model_name, model_names
from toolscout.chat.schemas import own_arguments, plain_schema
from toolscout.chat.tool_calls import read_tool_call
from toolscout.chat.toolset import Discovery

__all__ = [
    "Discovery",
    "anthropic_tool",
    "definition_tokens",
    "model_name",
    "model_names",
    "openai_tool",
    "own_arguments",
    "plain_schema",
    "read_tool_call",
]
