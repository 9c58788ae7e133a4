"""One drive in virtual time: model steps, tools, callbacks, prompts."""
