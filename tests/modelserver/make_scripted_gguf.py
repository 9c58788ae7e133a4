"""Build a tiny GGUF whose greedy output is a script: a deterministic model for a real server.

A one-layer llama whose attention and feed-forward outputs are zero, so that what leaves the
block is still the embedding of the last token alone. The embedding has one axis per token and
the output matrix is a table of next tokens: the model is a Markov chain over tokens. Byte
tokens encode the prompt, and every scripted piece is a token of its own. The chat template ends
the prompt with a control token `<|NAME.STEP|>` that selects the script: NAME comes from
`script:NAME` in the last user message, STEP is the number of tool messages since then.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np

# In a script None ends the turn, a list is raw bytes, and "@loop:x" repeats x for ever.
Piece = str | list[int] | None

SCRIPTS: dict[str, Sequence[Piece]] = {
    "hello.0": ["Hello", " from", " a scripted", " model.", None],
    "move.0": [
        *("Let me", " move it.", "\n<tool_call>\n", '{"name": "move_place", '),
        *('"arguments": {"na', 'me": "Tokyo', ' Tower", ', '"day_number": 2', "}}"),
        *("\n</tool_call>", None),
    ],
    "move.1": ["Tokyo Tower", " is now on", " day 2.", None],
    "two.0": [
        *("<tool_call>\n{", '"name": "move_place", "arg'),
        *('uments": {"name": "Asakusa", "day_number": 1}', "}\n</tool_call>"),
        *("\n<tool_call>", '\n{"name": "remove_day", "arguments"', ': {"day_number": 3}}'),
        *("\n</tool_call>\n", None),
    ],
    "two.2": ["Both", " done.", None],
    "noargs.0": [
        *("<tool_call>", '\n{"name": "list_places", "arguments": ', "{}}\n", "</tool_call>", None)
    ],
    "noargs.1": ["There are", " three places.", None],
    "think.0": [
        *("<think>", "The user wants", " a plan.", "\n</think>\n\n", "Here is", " the plan.", None)
    ],
    "long.0": ["<tool_call>\n ", '{"name": "move_place", "arguments": {"name": "', "@loop:very "],
    "text_loop.0": ["@loop:again "],
    "uni.0": ["sep:", "\u2028", "end ", list("🗼".encode()), " e\u0301.", None],
}

EMBEDDING_HEAD = 64
FEED_FORWARD = 32


def byte_characters() -> dict[int, str]:
    """The printable character that stands for each byte in a byte-level vocabulary."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    named = {byte: chr(byte) for byte in printable}
    return named | {byte: chr(256 + n) for n, byte in enumerate(others)}


class Vocabulary:
    """The tokens in order, and which token follows which."""

    def __init__(self) -> None:
        self.characters = byte_characters()
        self.tokens: list[str] = []
        self.kinds: list[int] = []
        self.edges: list[tuple[int, int]] = []
        self.end = self.add("<|im_end|>", gguf.TokenType.CONTROL)
        self.begin = self.add("<|im_start|>", gguf.TokenType.CONTROL)
        self.bytes = {b: self.add(c, gguf.TokenType.NORMAL) for b, c in self.characters.items()}
        # The target of the one merge that a byte-pair vocabulary needs.
        self.merge = self.characters[0x20], self.characters[ord("t")]
        self.add("".join(self.merge), gguf.TokenType.NORMAL)
        for name, pieces in SCRIPTS.items():
            self._add_script(self.add(f"<|{name}|>", gguf.TokenType.CONTROL), pieces)

    def add(self, text: str, kind: int) -> int:
        if text in self.tokens:
            raise ValueError(f"token text used twice, split it differently: {text!r}")
        self.tokens.append(text)
        self.kinds.append(kind)
        return len(self.tokens) - 1

    def _add_script(self, current: int, pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            if piece is None:
                self.edges.append((current, self.end))
            elif isinstance(piece, list):
                for byte in piece:
                    self.edges.append((current, self.bytes[byte]))
                    current = self.bytes[byte]
            else:
                text = piece.removeprefix("@loop:").encode()
                spelled = "".join(self.characters[byte] for byte in text)
                token = self.add(spelled, gguf.TokenType.NORMAL)
                self.edges.append((current, token))
                current = token
                if piece.startswith("@loop:"):
                    self.edges.append((current, current))


def build(path: Path) -> None:
    """Write the model to `path`; takes well under a second."""
    vocabulary = Vocabulary()
    count = len(vocabulary.tokens)
    width = (count + 63) // 64 * 64
    writer = gguf.GGUFWriter(str(path), "llama")
    _describe(writer, vocabulary, count, width)
    embedding = np.zeros((count, width), np.float32)
    embedding[np.arange(count), np.arange(count)] = 1
    following = np.zeros((count, width), np.float32)
    # Anything that no script continues ends the turn.
    following[vocabulary.end, :] = 0.2
    for before, after in vocabulary.edges:
        following[after, before] = 1.0
    for name, tensor in _tensors(embedding, following, width).items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _describe(writer: Any, vocabulary: Vocabulary, count: int, width: int) -> None:
    writer.add_name("scripted")
    writer.add_block_count(1)
    writer.add_context_length(65536)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(1)
    writer.add_head_count_kv(1)
    writer.add_key_length(EMBEDDING_HEAD)
    writer.add_value_length(EMBEDDING_HEAD)
    writer.add_rope_dimension_count(EMBEDDING_HEAD)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(count)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(vocabulary.tokens)
    writer.add_token_types(vocabulary.kinds)
    writer.add_token_merges([" ".join(vocabulary.merge)])
    writer.add_bos_token_id(vocabulary.begin)
    writer.add_eos_token_id(vocabulary.end)
    writer.add_add_bos_token(False)
    template = Path(__file__).with_name("chat_template.jinja").read_text("utf-8")
    writer.add_chat_template(template)


def _tensors(embedding: Any, following: Any, width: int) -> dict[str, Any]:
    def zeros(*shape: int) -> Any:
        return np.zeros(shape, np.float32)

    ones = np.ones(width, np.float32)
    return {
        "token_embd.weight": embedding,
        "output.weight": following,
        "output_norm.weight": ones,
        "blk.0.attn_norm.weight": ones,
        "blk.0.ffn_norm.weight": ones,
        "blk.0.attn_q.weight": zeros(EMBEDDING_HEAD, width),
        "blk.0.attn_k.weight": zeros(EMBEDDING_HEAD, width),
        "blk.0.attn_v.weight": zeros(EMBEDDING_HEAD, width),
        "blk.0.attn_output.weight": zeros(width, EMBEDDING_HEAD),
        "blk.0.ffn_gate.weight": zeros(FEED_FORWARD, width),
        "blk.0.ffn_up.weight": zeros(FEED_FORWARD, width),
        "blk.0.ffn_down.weight": zeros(width, FEED_FORWARD),
    }
