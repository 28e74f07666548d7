#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lagwise/data/sets/shards.h"
#include "lagwise/data/text/tokenizer.h"

namespace lagwise::data {

/// One example of a task: a sequence with a label, two sequences with a label, or a
/// sequence and what is to be made of it.
struct Example {
  int label = 0;
  std::vector<int32_t> first, second;
};

/// One whose sequences are bytes, in the tokens of a tokenizer.
Example encoded(const Tokenizer& tokenizer, const Example& bytes);

/// What is done with each example as it is read or made; `done`: the fraction of all
/// that has been, negative where nobody knows.
using VisitExample =
    std::function<void(const std::string& split, const Example& example, double done)>;

/// What examples of a set have. Both kinds of set say it the same way in a shard:
///
///     labelled   the first token of `first` is the label
///     paired     sequence 2 i is `first` of example i, sequence 2 i + 1 is `second`
struct ExampleLayout {
  bool labelled = true, paired = false;
};

/// The examples of one split: gathered in memory, or in a mapped shard.
class ExampleSplit {
 public:
  explicit ExampleSplit(ExampleLayout layout) : layout_(layout) {}
  /// Of a mapped shard, whose labels may be above the `vocabulary` of its tokens.
  ExampleSplit(ExampleLayout layout, const Shard& shard, int64_t vocabulary)
      : layout_(layout), shard_(&shard), vocabulary_(vocabulary) {}

  void add(const Example& example);  ///< of a split in memory

  int64_t size() const;
  int label(int64_t example) const;  ///< 0 where there is none
  /// Tokens of `first` (part 0) or `second` (part 1).
  int64_t length(int64_t example, int part = 0) const;
  /// Copies tokens [begin, begin + out.size()) of a part. DataError for one outside of
  /// the vocabulary.
  void read(int64_t example, int part, int64_t begin, std::span<int64_t> out) const;
  uint64_t hash(uint64_t start) const;  ///< of a split in memory

 private:
  int parts() const { return layout_.paired ? 2 : 1; }
  int64_t sequence(int64_t example, int part) const { return example * parts() + part; }
  bool leads(int part) const { return layout_.labelled && part == 0; }

  ExampleLayout layout_;
  const Shard* shard_ = nullptr;
  int64_t vocabulary_ = 0;
  std::vector<int> labels_;
  std::vector<uint16_t> tokens_;        // of all parts, one after another
  std::vector<uint64_t> starts_ = {0};  // of each part, and where the last ends
};

/// Examples by split.
class ExampleSet {
 public:
  explicit ExampleSet(ExampleLayout layout) : layout_(layout) {}

  /// A prepared set. DataError where it is damaged or of another scheme.
  ExampleSet(const std::string& folder, const std::string& scheme,
             ExampleLayout layout);

  void add(const std::string& split, const Example& example);

  const ExampleLayout& layout() const { return layout_; }
  bool has(const std::string& split) const { return splits_.contains(split); }
  /// std::invalid_argument lists the splits there are.
  const ExampleSplit& split(const std::string& name) const;
  std::vector<std::string> splits() const;

  /// What the maker of a prepared set kept in it: empty for sets in memory.
  std::string info(const std::string& key) const;
  int64_t number(const std::string& key) const;  ///< DataError if it is none
  /// `fallback` where the set has nothing by this key, as one of an earlier version.
  int64_t number(const std::string& key, int64_t fallback) const {
    return info(key).empty() ? fallback : number(key);
  }
  /// None: they are numbers. DataError where one of them has no name.
  std::vector<std::string> class_names() const;
  /// DataError for a prepared set of another vocabulary.
  void expect_vocabulary(int64_t vocabulary) const;

  uint64_t hash() const;

 private:
  std::string manifest_file() const { return folder_ + "/manifest.json"; }

  ExampleLayout layout_;
  std::string folder_;
  std::unique_ptr<ShardSet> shards_;
  std::map<std::string, ExampleSplit> splits_;
};

/// Writes a prepared set: nothing is one before commit().
class ExampleWriter {
 public:
  /// `vocabulary` of the tokens, `classes` of the labels; both are kept in info too.
  ExampleWriter(const std::string& folder, ShardManifest manifest, ExampleLayout layout,
                int64_t classes = 0);

  void add(const std::string& split, const Example& example);
  void note(const std::string& key, int64_t info) {
    writer_.note(key, std::to_string(info));
  }
  void note_classes(const std::vector<std::string>& names);  ///< and how many
  void commit() { writer_.commit(); }

 private:
  ExampleLayout layout_;
  ShardSetWriter writer_;
};

}  // namespace lagwise::data
