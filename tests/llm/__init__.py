"""Tests of `rungent.llm`: decoder and assembler without I/O, the adapter against fakes and peers."""
