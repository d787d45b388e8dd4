"""The single door to language models: `lm(name)` returns a `dspy.LM` for any of the names that townhall knows.

| name | model |
| --- | --- |
| `local` | the embedded default model, see `weights` |
| `local/qwen2.5-coder-0.5b`, `local/smollm2-135m` | the other embedded ones |
| `local/PATH.gguf` | weights of the user's own |
| `simulated`, `simulated/LABEL?accuracy=0.7&latency=0.2` | no model: see `simulation` |
| a name of `models.yaml` | what it says there, see `named` |
| `openai/NAME` or `NAME`, with an API base | an OpenAI-compatible server, see `endpoint` |
| `openai/gpt-4o`, `anthropic/...`, ... | any name of DSPy and LiteLLM; keys from the environment |
"""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..errors import InputError
from ..registry import nearest
from .named import ModelsFile, NamedModel, find_models_file

if TYPE_CHECKING:
    import dspy

Kind = Literal["embedded", "provider", "endpoint", "simulated"]

#: Seconds that a provider may stay silent.
PROVIDER_TIMEOUT = 120.0
#: Calls at the same time: as many as an embedded model has slots, and what most providers allow.
EMBEDDED_CONCURRENCY = 2
CONCURRENCY = 8
_MILLION = 1_000_000
#: How alike (0 to 1) a name must be to one of ours to be a slip of it for sure.
_SLIP = 0.75


@dataclass(frozen=True)
class Origin:
    """What `lm` knows of a model beyond what DSPy keeps; an attribute of the `dspy.LM`, never saved with it.

    Attributes:
        name: as the user named it.
        prompt_price: US dollars for a million prompt tokens.
        completion_price: US dollars for a million completion tokens.
        concurrency: calls at the same time, by default.
    """

    name: str
    prompt_price: float | None = None
    completion_price: float | None = None
    concurrency: int | None = None


def lm(
    name: str = "local",
    *,
    api_base: str | None = None,
    api_key_env: str | None = None,
    temperature: float | None = None,
    max_tokens: int | None = None,
    seed: int | None = None,
    timeout: float | None = None,
    models_file: str | os.PathLike[str] | None = None,
    prepare: bool = True,
    **kwargs: Any,
) -> dspy.LM:
    """Return a language model by name.

    Args:
        name: see the module.
        api_base: of an OpenAI-compatible server; "/v1" is added to an address without a path.
        api_key_env: the environment variable that holds the server's key (default OPENAI_API_KEY, which may be unset).
        temperature: default of its requests. Embedded models have 0.7; for the others it is the server's when None.
        max_tokens: default of its requests. Embedded models have 1024.
        seed: default of its requests; a request's own seed goes before.
        timeout: seconds of silence after which a server counts as stalled (120).
        models_file: a `models.yaml`; default: that of `TOWNHALL_MODELS`, else the one in this folder, if any.
        prepare: fetch an embedded model's weights now when they are missing, with a notice on standard error; else at
            its first call.
        **kwargs: passed on to `dspy.LM` (`cache`, `num_retries`, `callbacks`, ...).

    Raises:
        InputError: for a name nobody knows (the text gives the nearest one), or wrong settings.
        MissingDependencyError: for an embedded model without the extra `local`.
        RunError: when weights cannot be fetched.
    """
    settings = {"temperature": temperature, "max_tokens": max_tokens, "seed": seed}
    _check(settings)
    if "api_key" in kwargs:
        raise InputError("keys come from the environment only: set OPENAI_API_KEY, or name a variable with api_key_env")
    origin = Origin(name)
    if api_base is None and not _built_in(name):
        file = find_models_file(models_file)
        entry = file.entries.get(name) if file is not None else None
        if entry is not None:
            origin = Origin(name, entry.prompt_price, entry.completion_price, entry.concurrency)
            settings = {key: getattr(entry, key) if value is None else value for key, value in settings.items()}
            name, api_base = entry.model, entry.api_base
            api_key_env = api_key_env or entry.api_key_env
            timeout = entry.timeout if timeout is None else timeout
    else:
        file = find_models_file(models_file) if models_file else None
    made = _make(name, api_base, api_key_env, timeout, prepare, file, settings, kwargs)
    made.townhall = origin
    return made


def _make(
    name: str,
    api_base: str | None,
    api_key_env: str | None,
    timeout: float | None,
    prepare: bool,
    file: ModelsFile | None,
    settings: dict[str, Any],
    kwargs: dict[str, Any],
) -> dspy.LM:
    given = {key: value for key, value in {**settings, **kwargs}.items() if value is not None}
    if api_base is not None:
        if _built_in(name):
            raise InputError(f"'{name}' runs in this process and takes no API base; leave one of the two out")
        return _endpoint(name, api_base, api_key_env, timeout, given)
    if name.partition("/")[0] == "local":
        return _embedded(name, prepare, given)
    if name.partition("/")[0].partition("?")[0] == "simulated":
        from .simulated import AsyncSimulatedEngine, SimulatedEngine

        engine = SimulatedEngine(name)
        return _lm(engine.label, engine=engine, async_engine=AsyncSimulatedEngine(engine), **given)
    if api_key_env is not None:
        raise InputError(
            f"api_key_env goes with an API base; the key of '{name}' comes from its provider's own variable"
        )
    check_provider_name(name, file)
    return _lm(name, timeout=PROVIDER_TIMEOUT if timeout is None else timeout, **given)


def _lm(model: str, **settings: Any) -> dspy.LM:
    import dspy

    try:
        return dspy.LM(model, **settings)
    except (TypeError, ValueError, dspy.LMError) as error:
        raise InputError(f"{model}: {error}") from error


def _endpoint(
    name: str, api_base: str, api_key_env: str | None, timeout: float | None, given: dict[str, Any]
) -> dspy.LM:
    from .endpoint import AsyncEndpointEngine, EndpointEngine

    model = name.removeprefix("openai/")
    if not model:
        raise InputError(f"'{name}' names no model of {api_base}")
    if api_key_env is not None and not os.environ.get(api_key_env):
        raise InputError(f"the environment variable {api_key_env}, which should hold the key for '{name}', is not set")
    engine = EndpointEngine(model, api_base, api_key_env, timeout)
    return _lm(engine.label, engine=engine, async_engine=AsyncEndpointEngine(engine), **given)


def _embedded(name: str, prepare: bool, given: dict[str, Any]) -> dspy.LM:
    from . import weights

    weights.require_engine()
    _, _, chosen = name.partition("/")
    chosen = chosen or weights.DEFAULT
    own = chosen.lower().endswith(".gguf")
    if own:
        if not Path(chosen).expanduser().is_file():
            raise InputError(f"{chosen}: no such file")
    else:
        weights.weights(chosen)
        if prepare:
            weights.ensure(chosen)
    from .embedded import MAX_TOKENS, TEMPERATURE, AsyncEmbeddedEngine, EmbeddedEngine

    engine = EmbeddedEngine(path=chosen) if own else EmbeddedEngine(chosen)
    settings = {"temperature": TEMPERATURE, "max_tokens": MAX_TOKENS, **given}
    return _lm(engine.label, engine=engine, async_engine=AsyncEmbeddedEngine(engine), **settings)


def _built_in(name: str) -> bool:
    return name.partition("/")[0].partition("?")[0] in ("local", "simulated")


def _check(settings: dict[str, Any]) -> None:
    temperature, max_tokens, seed = settings["temperature"], settings["max_tokens"], settings["seed"]
    if temperature is not None and not 0 <= temperature <= 2:
        raise InputError(f"the temperature is {temperature}; it must be from 0 to 2")
    if max_tokens is not None and (isinstance(max_tokens, bool) or max_tokens != int(max_tokens) or max_tokens < 1):
        raise InputError(f"max_tokens is {max_tokens}; it must be a whole number, at least 1")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
        raise InputError(f"the seed is {seed!r}; it must be a whole number")


def check_provider_name(name: str, file: ModelsFile | None = None) -> None:
    """Check that DSPy or LiteLLM knows the provider of a model's name.

    Raises:
        InputError: when neither does; the text gives the nearest name that somebody knows.
    """
    from dspy.clients.engines.lm15_engine import LM15Engine
    from dspy.lm15 import LM15Error, RouterConfig, _definitions, registered_providers

    mine = ["local", *(f"local/{known}" for known in _embedded_names()), "simulated", *(file.entries if file else ())]
    provider, slash, rest = name.partition("/")
    try:
        LM15Engine(RouterConfig(env={}, providers=_definitions(registered_providers()))).resolve(name)
        return
    except LM15Error:
        pass
    # A slip in one of our own names is told without asking LiteLLM, whose import takes seconds.
    if not difflib.get_close_matches(name.lower(), mine, n=1, cutoff=_SLIP):
        providers = _litellm_providers(name)
        if providers is None:
            return
        if slash and (close := difflib.get_close_matches(provider, providers, n=1, cutoff=0.5)):
            raise InputError(f"unknown model '{name}'. Did you mean '{close[0]}/{rest}'?")
    hint = nearest(name, mine)
    if not hint:
        hint = " For a model of a provider write PROVIDER/MODEL (openai/gpt-4o); for a server's model give --api-base."
    listed = f" Named in {file.path}: {', '.join(file.entries)}." if file else ""
    raise InputError(f"unknown model '{name}'.{hint}{listed} Known: local, simulated, or PROVIDER/MODEL")


def _litellm_providers(name: str) -> list[str] | None:
    """Return LiteLLM's providers when it does not know the name's; None when it does. Takes seconds."""
    from dspy.clients._litellm import get_litellm

    litellm = get_litellm(feature="models of LiteLLM")
    litellm.suppress_debug_info = True
    try:
        litellm.get_llm_provider(model=name)
        return None
    except Exception:  # its error class depends on its version
        return [str(getattr(provider, "value", provider)) for provider in litellm.provider_list]


def _embedded_names() -> list[str]:
    from . import weights

    return list(weights.catalogue())


def kind(lm: Any) -> Kind:
    """Return what kind of model an LM is."""
    engine = _engine(lm)
    if isinstance(engine, str):
        return "endpoint" if _setting(lm, "api_base", "base_url") else "provider"
    stated: Kind = getattr(engine, "kind", "provider")
    return stated


def is_simulated(lm: Any) -> bool:
    """Return whether an LM's replies come from a simulated model, here or behind an endpoint.

    A server's model is recognised by its name, or by the name that its replies give.
    """
    engine = _engine(lm)
    if kind(lm) == "endpoint" and not isinstance(engine, str):
        return engine.saw_simulated or engine.model.startswith("simulated")
    return kind(lm) == "simulated"


def describe(lm: Any) -> dict[str, Any]:
    """Return what a run's record says of a model: no secret in it.

    Returns:
        name: as the user named it; model: as DSPy names it; kind; simulated; api_base without credentials, None where
        there is none; temperature, max_tokens, seed: the defaults of its requests.
    """
    from .endpoint import without_credentials

    engine = _engine(lm)
    what = kind(lm)
    address = getattr(engine, "api_base", None) or _setting(lm, "api_base", "base_url")
    limit = _setting(lm, "max_tokens", "max_completion_tokens")
    return {
        "name": origin_of(lm).name,
        "model": engine.model if what == "endpoint" and not isinstance(engine, str) else lm.model,
        "kind": what,
        "simulated": is_simulated(lm),
        "api_base": without_credentials(str(address)) if address else None,
        "temperature": _setting(lm, "temperature"),
        "max_tokens": limit,
        "seed": _setting(lm, "seed"),
    }


def origin_of(lm: Any) -> Origin:
    """Return what is known of an LM beyond DSPy; for one made elsewhere, its name only."""
    found = getattr(lm, "townhall", None)
    return found if isinstance(found, Origin) else Origin(str(getattr(lm, "model", lm)))


def default_concurrency(lm: Any) -> int:
    """Return how many calls should be made at the same time, unless the user says otherwise."""
    stated = origin_of(lm).concurrency
    if stated is not None:
        return stated
    return EMBEDDED_CONCURRENCY if kind(lm) == "embedded" else CONCURRENCY


def price(lm: Any, prompt_tokens: int, completion_tokens: int) -> float | None:
    """Return what a call cost in US dollars, by the prices that `models.yaml` states.

    Returns:
        0.0 for embedded and simulated models without prices; None where no price is stated: DSPy's estimate, if any,
        holds then. Where one price is stated, the other counts as 0.
    """
    origin = origin_of(lm)
    if origin.prompt_price is None and origin.completion_price is None:
        return 0.0 if kind(lm) in ("embedded", "simulated") else None
    paid = prompt_tokens * (origin.prompt_price or 0.0) + completion_tokens * (origin.completion_price or 0.0)
    return paid / _MILLION


def with_name(lm: Any, name: str) -> Any:
    """Return the LM under another name, for `describe`."""
    renamed = lm.copy()
    renamed.townhall = replace(origin_of(lm), name=name)
    return renamed


def named_models(models_file: str | os.PathLike[str] | None = None) -> dict[str, NamedModel]:
    """Return the models that `models.yaml` names; empty when there is none.

    Raises:
        InputError: when the file is wrong.
    """
    file = find_models_file(models_file)
    return dict(file.entries) if file is not None else {}


def _engine(lm: Any) -> Any:
    return getattr(lm, "engine", "auto")


def _setting(lm: Any, *names: str) -> Any:
    kwargs = getattr(lm, "kwargs", None) or {}
    return next((kwargs[name] for name in names if kwargs.get(name) is not None), None)
