"""Language models: embedded, by DSPy or LiteLLM name, by endpoint, and simulated."""
