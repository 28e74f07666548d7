#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lagwise/data/sets/shards.h"
#include "lagwise/data/sets/text_file.h"
#include "lagwise/data/text/tokenizer.h"

namespace lagwise::data {

/// An entry of a set's info: each of its sequences is a document.
inline constexpr const char* kDocumentsKept = "documents";

/// Where a document stands in a stream: tokens [begin, end).
struct Document {
  int64_t begin, end;
  int64_t length() const { return end - begin; }
  bool operator==(const Document&) const = default;
};

/// A stream of tokens: the bytes of parts of files one after another, or a shard, whose
/// sequences may be documents that windows keep apart.
class TokenStream {
 public:
  TokenStream() = default;
  TokenStream(const Shard* shard, bool documents);

  void append(Bytes part);  ///< which must outlive this object

  int64_t size() const { return shard_ ? shard_->tokens() : size_; }
  /// Copies tokens [first, first + out.size()). std::out_of_range beyond the end.
  void read(int64_t first, std::span<int64_t> out) const;
  const std::vector<Bytes>& parts() const { return parts_; }

  /// What windows stay within; where documents are not kept apart, the stream is one.
  const std::vector<Document>& documents() const { return documents_; }
  bool keeps_documents() const { return documents_.size() > 1; }
  /// Where what training crops stay within ends: each document, or each shard.
  const std::vector<int64_t>& crop_ends() const { return crop_ends_; }
  /// Tokens of the longest document.
  int64_t longest() const;
  /// That these tokens will be read soon: those of a shard are fetched meanwhile.
  void will_read(int64_t first, int64_t count) const {
    if (shard_) shard_->will_read(first, count);
  }

 private:
  const Shard* shard_ = nullptr;
  std::vector<Bytes> parts_;
  std::vector<int64_t> starts_;  // of the parts
  std::vector<Document> documents_ = {{0, 0}};
  std::vector<int64_t> crop_ends_ = {0};
  int64_t size_ = 0;
};

/// How much text there is: LanguageCorpus says what is counted.
struct TextExtent {
  int64_t tokens = 0, bytes = 0, words = 0, unknown = 0;
};

/// Text by split, whatever it lies in:
///
///     a prepared set                    of `lagwise data language`: bytes, or the
///                                       tokens of the tokenizer.json it holds; with
///                                       --documents each is a sequence
///     wiki.{train,valid,test}.tokens    WikiText, or .raw; those that are there
///     {train,valid,test}.txt            train, and one of the others (by the names of
///                                       split_file.h); also .jsonl, .gz, or folders of
///                                       them. Without valid, here and above, the end of
///                                       train is it
///     a file, or a folder of .txt,      one after another: the end is test, what
///     .jsonl, or either with .gz        stands before it valid, the rest train
class LanguageCorpus {
 public:
  /// `valid`, `test`: fractions, for a corpus without splits of its own. DataError for
  /// what is missing, empty or damaged.
  LanguageCorpus(const std::string& path, double valid, double test);
  LanguageCorpus(const LanguageCorpus&) = delete;

  bool has(const std::string& split) const { return splits_.contains(split); }
  /// std::invalid_argument lists the splits there are.
  const TokenStream& split(const std::string& name) const;
  std::vector<std::string> splits() const;

  /// The documents (text_corpus.h) of a split of raw text, whole: one that stands across
  /// the border of two splits belongs to that which has its middle.
  std::vector<Bytes> documents(const std::string& split) const;

  /// The files it was read from; none for a prepared set.
  std::vector<std::string> files() const;

  /// What the tokens stand for; nullptr: bytes.
  const Tokenizer* tokenizer() const { return tokenizer_.get(); }
  int64_t vocabulary() const { return tokenizer_ ? tokenizer_->vocabulary() : 256; }

  // Of the text of a split, whatever its tokens are; a raw text is read through.
  int64_t bytes(const std::string& split) const;
  int64_t words(const std::string& split) const;  ///< as WikiText counts them; 0: an
                                                  ///<   older set does not say

  /// How many of a split's tokens stand for something that is not in the vocabulary.
  int64_t unknown(const std::string& split) const;

  /// All of these; where documents are kept apart, of those with more than `longer`
  /// tokens, whose text is counted anew.
  TextExtent extent(const std::string& split, int64_t longer) const;

  /// Over the bytes of each split: reads all of a corpus that is not prepared.
  uint64_t hash() const;

 private:
  void open_set();
  bool open_wikitext_files(double valid);
  bool open_split_files(double valid);
  void take_splits(std::map<std::string, std::vector<TextFile>>& texts, double valid);
  void open_plain(double valid, double test);
  void take_part(const std::string& split, int64_t begin, int64_t end);
  int64_t bytes_of_files() const;
  int64_t noted(const std::string& key) const;

  std::string path_;
  std::unique_ptr<ShardSet> shards_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::vector<TextFile> files_;
  std::map<std::string, TokenStream> splits_;
};

}  // namespace lagwise::data
