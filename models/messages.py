"""Between DSPy's canonical requests and plain chat messages, for engines that speak the latter."""

from __future__ import annotations

from typing import Any

from dspy import lm15

Message = dict[str, str]


def plain_messages(request: lm15.Request) -> list[Message]:
    """Return a request's messages as `{"role", "content"}` dictionaries, the system prompt first.

    Raises:
        lm15.UnsupportedFeatureError: for anything but text (images, tools), which these engines cannot read.
    """
    if request.tools:
        raise lm15.UnsupportedFeatureError("this model takes no tools", feature="tools")
    out: list[Message] = []
    if request.system:
        system = request.system
        out.append({"role": "system", "content": system if isinstance(system, str) else _text(system)})
    for message in request.messages:
        role = "system" if message.role == "developer" else message.role
        out.append({"role": role, "content": _text(message.parts)})
    return out


def _text(parts: Any) -> str:
    texts = []
    for part in parts:
        if part.type == "thinking":
            continue
        if part.type not in ("text", "refusal"):
            raise lm15.UnsupportedFeatureError(f"this model reads text only, not {part.type}", feature="messages")
        texts.append(part.text)
    return "\n".join(texts)


def response(
    model: str,
    text: str,
    *,
    finish: str = "stop",
    prompt_tokens: int,
    completion_tokens: int,
    cached_tokens: int | None = None,
    provider_data: dict[str, Any] | None = None,
) -> lm15.Response:
    """Return a canonical response that carries one text."""
    return lm15.Response(
        id=None,
        model=model,
        message=lm15.Message(role="assistant", parts=(lm15.TextPart(text),)),
        finish_reason=finish,
        usage=lm15.Usage(
            input_tokens=prompt_tokens,
            output_tokens=completion_tokens,
            total_tokens=prompt_tokens + completion_tokens,
            cache_read_tokens=cached_tokens,
        ),
        provider_data=provider_data,
    )


def schema_of(request: lm15.Request) -> dict[str, Any] | None:
    """Return the JSON schema that a request asks for; None when it asks for none."""
    wanted = request.config.response_format
    return wanted["schema"] if wanted and wanted["type"] == "json_schema" else None
