"""Adding up what a run paid for and what it was served from the cache."""

from __future__ import annotations

from ..signatures.transcript import Usage

_CACHED = ("cached", "cached_prompt_tokens", "cached_completion_tokens", "cached_cost")


def only_paid(usage: Usage) -> Usage:
    """Return a usage without what came from the cache."""
    return usage.model_copy(
        update={"cached": 0, "cached_prompt_tokens": 0, "cached_completion_tokens": 0, "cached_cost": 0.0}
    )


def only_cached(usage: Usage) -> Usage:
    """Return what came from the cache in a usage."""
    return Usage(**{name: getattr(usage, name) for name in _CACHED})


def accounted(paid: Usage, attempt: Usage) -> Usage:
    """Return what was paid in all attempts, and as cached what the last one took beyond that.

    A reply that an earlier, unfinished attempt paid for comes from the cache in the last one, but counts once.
    """
    whole = attempt.uncached()
    known = whole.cost is not None and paid.cost is not None
    return only_paid(paid).model_copy(
        update={
            "cached": max(0, whole.calls - paid.calls),
            "cached_prompt_tokens": max(0, whole.prompt_tokens - paid.prompt_tokens),
            "cached_completion_tokens": max(0, whole.completion_tokens - paid.completion_tokens),
            "cached_cost": max(0.0, (whole.cost or 0.0) - (paid.cost or 0.0)) if known else None,
        }
    )
