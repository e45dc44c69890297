"""The card of a model whose tokens are bytes, for benchmarks that compute nothing.

Owns the tokenizer that it needs: one token for each byte, and two control tokens.
"""

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from chatserve.engine.api import ModelCard

_CONTROL = ("<|im_start|>", "<|im_end|>")


def byte_card(name: str, max_model_len: int) -> ModelCard:
    """Return the card of such a model."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: i for i, letter in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(_CONTROL))
    return ModelCard(
        name=name,
        max_model_len=max_model_len,
        max_prompt_tokens=max_model_len - 1,
        vocab_size=len(alphabet) + len(_CONTROL),
        tokenizer_json=tokenizer.to_str(),
        chat_template=None,
        bos_token=None,
        eos_token=_CONTROL[1],
        eos_token_ids=(len(alphabet) + 1,),
        adds_bos=False,
    )
