"""Export formats: how tuned prompts leave. One module a format, registered by name.

`base` holds what they share; `EXPORTERS` is in it.
"""
