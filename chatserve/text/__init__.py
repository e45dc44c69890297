"""Text to token ids and back: tokenizer, chat template, prompt, detokenizer, stop strings."""
