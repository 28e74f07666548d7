"""Bugs in tokenizers: pieces of words, byte pairs and their training, words."""

from planted.bug import Bug

PAIRS = "lagwise/data/text/byte_pairs.cpp"
TRAINING = "lagwise/data/text/byte_pair_training.cpp"
LEVEL = "lagwise/data/text/byte_level.cpp"
POINT = "lagwise/data/text/code_point.cpp"
WORDS = "lagwise/data/text/word_level.cpp"
JSON = "lagwise/data/text/tokenizer_json.cpp"

BUGS = [
    Bug("tokenizer: of equal merges the last comes first", "tokenizer", PAIRS,
        "return std::tie(rank, at) > std::tie(other.rank, other.at);",
        "return std::tie(rank, other.at) > std::tie(other.rank, at);"),
    Bug("tokenizer: what was merged is not tried with what stands before it", "tokenizer",
        PAIRS, "    consider(before[static_cast<size_t>(at)]);\n", ""),
    Bug("tokenizer: who stands behind does not learn of a merge", "tokenizer", PAIRS,
        "    if (next(at) < count) before[static_cast<size_t>(next(at))] = at;\n", ""),
    Bug("tokenizer: merges are done in any order", "tokenizer", PAIRS,
        "Merge{rank++, found->second}", "Merge{0 * rank++, found->second}"),
    Bug("tokenizer: of added tokens the shortest is taken", "tokenizer", PAIRS,
        "one.text.size() > next.token->text.size()",
        "one.text.size() < next.token->text.size()"),
    Bug("tokenizer: of pairs as frequent the last is learned first", "tokenizer", TRAINING,
        ": pair > other.pair;", ": pair < other.pair;"),
    Bug("tokenizer: pairs that a merge breaks up keep their count", "tokenizer", TRAINING,
        "change({merged.back(), pair.first}, -times, number);", ";"),
    Bug("tokenizer: a pair that occurs once is learned", "tokenizer", TRAINING,
        "constexpr int64_t kFewest = 2; ", "constexpr int64_t kFewest = 1; "),
    Bug("tokenizer: 'll is no ending", "tokenizer", LEVEL, '"\'m", "\'ll", "\'d"',
        '"\'m", "\'d"'),
    Bug("tokenizer: the last of several blanks does not go to the word", "tokenizer",
        LEVEL, "keeps_last ? blanks - last : blanks", "keeps_last ? blanks : blanks"),
    Bug("tokenizer: the soft hyphen is taken for visible", "tokenizer", LEVEL,
        "(byte >= 0xA1 && byte != 0xAD)", "(byte >= 0xA1)"),
    Bug("tokenizer: halves of surrogate pairs are letters", "tokenizer", POINT,
        "code > 0x10FFFF || surrogate", "code > 0x10FFFF || (surrogate && code == 0)"),
    Bug("tokenizer: a code may be written longer than it need be", "tokenizer", POINT,
        "code < kLeast[bytes] || ", ""),
    Bug("tokenizer: two words more than were asked for", "tokenizer", WORDS,
        "static_cast<size_t>(most - 2)", "static_cast<size_t>(most)"),
    Bug("tokenizer: a file that adds a blank before the text is read", "tokenizer", JSON,
        '"add_prefix_space", true)', '"add_prefix_space", false)'),
]
