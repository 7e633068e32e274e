"""The gateway to Claude: calls with a total deadline, one retry layer and a circuit breaker."""

from service.llm.calls import MessagesClient, Reply
from service.llm.messages import ask, open_client
from service.llm.stream import stream

__all__ = ["MessagesClient", "Reply", "ask", "open_client", "stream"]
