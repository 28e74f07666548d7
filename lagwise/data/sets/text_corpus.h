#pragma once

#include <string>
#include <vector>

#include "lagwise/data/sets/text_file.h"

namespace lagwise::data {

/// Text files: one file, or every .txt or .jsonl file under a folder, packed with gzip
/// or not, in the order of their names. DataError for a path that is missing or holds
/// no text at all.
std::vector<TextFile> open_text(const std::string& path);

/// A split ("train", "valid", "test") of WikiText: the file wiki.SPLIT.tokens, or
/// wiki.SPLIT.raw, of the folder. (Merity et al., 2016, arXiv:1609.07843.)
TextFile open_wikitext(const std::string& folder, const std::string& split);

/// The tokens of WikiText's perplexity: words between blanks, and one <eos> a line.
/// Bits per byte become perplexity per word as 2^(bits bytes / words).
int64_t wikitext_words(Bytes text);

/// The articles: each begins with a line " = Title = " between two empty ones. What
/// stands before the first belongs to it.
std::vector<Bytes> wikitext_articles(Bytes text);

/// The documents of a file: the rows of .jsonl, the articles of WikiText, or all of it.
std::vector<Bytes> documents_of(const TextFile& file);

}  // namespace lagwise::data
