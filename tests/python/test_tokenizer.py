"""The tokenizers of lagwise beside Hugging Face's `tokenizers`: the same merges from the same text,
the same tokens, and each reads the file the other wrote. Needs the program and the package
`tokenizers`; without either it is skipped, not passed."""

import random
import struct

import pytest

tokenizers = pytest.importorskip("tokenizers", reason="SKIPPED, not passed: no package tokenizers")

SIGNS = ["the", "cat", "it's", "we'll", "they'RE", "don't", "'s", "''", "été", "naïve", "Straße", "γάτα", "кот",
         "猫が好き", "한국어", "हिन्दी", "عربي", "１２３", "²½", "Ⅷ", "\u00a0", "\u3000", "\u2028", "\u200b",
         "🎵🎶", "e\u0301", "1984", "3.14", "?!", "...", "_x_", "\t", "\n", "\r\n", "  ", " ", "   ", "\x00", "\x7f"]


def mixed_text(pieces, seed):
    draw = random.Random(seed)
    return "".join(draw.choice(SIGNS) + draw.choice(["", " ", "\n"]) for _ in range(pieces))


def english(words, seed):
    draw = random.Random(seed)
    stems = ["walk", "talk", "light", "house", "warm", "read", "write", "count", "begin", "answer"]
    ends = ["", "s", "ed", "ing", "er", "ers", "ly", "ness", "'s"]
    return " ".join(draw.choice(stems) + draw.choice(ends) for _ in range(words)) + "\n"


@pytest.fixture(name="prepared")
def make_prepared(program):
    return lambda *words: prepared_by(program, *words)


def prepared_by(program, folder, text, *flags):
    """The tokens that `lagwise data language` makes of a text, and its tokenizer.json."""
    source, out = folder / "text.txt", folder / "set"
    source.write_bytes(text.encode())
    program("data", "language", source, "--out", out, "--valid", "0", "--test", "0", *flags)
    shard = (out / "train.bin").read_bytes()
    width = struct.unpack_from("<I", shard, 8)[0]
    sequences = struct.unpack_from("<Q", shard, len(shard) - 8)[0]
    tokens = struct.unpack_from("<Q", shard, len(shard) - 16)[0]
    assert sequences >= 1
    return list(struct.unpack_from(f"<{tokens}{'H' if width == 2 else 'I'}", shard, 16)), out / "tokenizer.json"


def trained_by_hugging_face(text, vocabulary):
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE())
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.decoder = tokenizers.decoders.ByteLevel()
    theirs.train_from_iterator([text], tokenizers.trainers.BpeTrainer(
        vocab_size=vocabulary, min_frequency=2, show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet()))
    return theirs


@pytest.mark.parametrize("text", [mixed_text(4000, 1), english(5000, 2)], ids=["mixed", "english"])
def test_byte_pairs_give_the_same_tokens(prepared, tmp_path, text):
    ours, file = prepared(tmp_path, text, "--tokens", "bpe:600")
    theirs = tokenizers.Tokenizer.from_file(str(file))
    assert theirs.encode(text).ids == ours
    assert theirs.decode(ours, skip_special_tokens=False) == text
    assert len(ours) < len(text.encode()) / 2  # the merges are used


@pytest.mark.parametrize("text", [mixed_text(4000, 3), english(5000, 4)], ids=["mixed", "english"])
def test_training_finds_the_same_tokens(prepared, tmp_path, text):
    _, file = prepared(tmp_path, text, "--tokens", "bpe:500")
    ours, theirs = tokenizers.Tokenizer.from_file(str(file)), trained_by_hugging_face(text, 500)
    assert ours.get_vocab() == theirs.get_vocab()
    assert ours.encode(text).ids == theirs.encode(text).ids


def test_what_hugging_face_wrote_is_read(prepared, tmp_path):
    theirs = trained_by_hugging_face(english(3000, 5), 400)
    theirs.add_special_tokens(["[MASK]"])
    file = tmp_path / "theirs.json"
    theirs.save(str(file))
    text = "The [MASK] answered warmly.\n" + mixed_text(500, 6)
    ours, kept = prepared(tmp_path, text, "--tokenizer", file)
    assert theirs.encode(text).ids == ours
    assert tokenizers.Tokenizer.from_file(str(kept)).get_vocab() == theirs.get_vocab()


def test_what_was_read_and_saved_again_is_read(prepared, tmp_path):
    text = english(1000, 7)
    ours, file = prepared(tmp_path, text, "--tokens", "bpe:300")
    again = tmp_path / "again.json"
    tokenizers.Tokenizer.from_file(str(file)).save(str(again))
    (tmp_path / "second").mkdir()
    assert prepared(tmp_path / "second", text, "--tokenizer", again)[0] == ours


def test_words_give_the_same_tokens(prepared, tmp_path):
    text = " \n = Title = \n \n The cat , the <unk> and\tthe dog . \n" + english(200, 8) + "A\u00a0b c\r\n"
    ours, file = prepared(tmp_path, text, "--tokens", "word:40")
    theirs = tokenizers.Tokenizer.from_file(str(file))
    assert theirs.encode(text).ids == ours
    assert theirs.get_vocab_size() == 40 and ours.count(theirs.token_to_id("<unk>")) > 1
