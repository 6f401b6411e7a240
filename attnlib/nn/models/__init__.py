"""Real, trained models, read from their files and computed with `attnlib.nn`.

    minilm    an encoder: every token of a sentence looks at every other
    smollm2   a language model with the parts of LLaMA, 4 bits a weight
    whisper   speech to text: tokens look at a sound

Each is a module of its own that stands on one page. `attnlib.checkpoints` knows where
the files lie and how to get them; their packages are never imported.
"""
