#include "lagwise/data/sets/examples.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/fnv1a.h"

namespace lagwise::data {
namespace {

template <class Number>
Bytes memory_of(const std::vector<Number>& list) {
  return {reinterpret_cast<const uint8_t*>(list.data()), list.size() * sizeof(Number)};
}

ShardManifest with_classes(ShardManifest manifest, int64_t classes) {
  manifest.info["vocabulary"] = std::to_string(manifest.vocabulary);
  manifest.info["classes"] = std::to_string(classes);
  manifest.vocabulary =
      std::max(manifest.vocabulary, classes);  // labels are tokens too
  return manifest;
}

}  // namespace

Example encoded(const Tokenizer& tokenizer, const Example& bytes) {
  return {bytes.label, encode_bytes(tokenizer, bytes.first),
          encode_bytes(tokenizer, bytes.second)};
}

void ExampleSplit::add(const Example& example) {
  labels_.push_back(example.label);
  const auto append = [&](const std::vector<int32_t>& ids) {
    for (const int32_t id : ids) tokens_.push_back(static_cast<uint16_t>(id));
    starts_.push_back(tokens_.size());
  };
  append(example.first);
  if (layout_.paired) append(example.second);
}

int64_t ExampleSplit::size() const {
  return shard_ ? shard_->sequences() / parts() : static_cast<int64_t>(labels_.size());
}

int ExampleSplit::label(int64_t example) const {
  if (!shard_) return labels_.at(static_cast<size_t>(example));
  if (!layout_.labelled) return 0;
  int64_t label = 0;
  shard_->read(sequence(example, 0), 0, std::span(&label, 1));
  return static_cast<int>(label);
}

int64_t ExampleSplit::length(int64_t example, int part) const {
  const int64_t at = sequence(example, part);
  if (shard_) return shard_->length(at) - (leads(part) ? 1 : 0);
  const auto place = static_cast<size_t>(at);
  return static_cast<int64_t>(starts_.at(place + 1) - starts_[place]);
}

void ExampleSplit::read(int64_t example, int part, int64_t begin,
                        std::span<int64_t> out) const {
  const int64_t at = sequence(example, part);
  if (shard_) {
    shard_->read(at, begin + (leads(part) ? 1 : 0), out);
    for (const int64_t token : out)
      if (token >= vocabulary_)
        throw DataError(shard_->name(), -1,
                        "tokens below " + std::to_string(vocabulary_) + ", got " +
                            std::to_string(token) + " in sequence " +
                            std::to_string(at));
    return;
  }
  if (begin < 0 || begin + static_cast<int64_t>(out.size()) > length(example, part))
    throw std::out_of_range("examples: read beyond the end of a sequence");
  const auto first =
      tokens_.begin() + static_cast<int64_t>(starts_[static_cast<size_t>(at)]) + begin;
  std::copy_n(first, out.size(), out.begin());
}

uint64_t ExampleSplit::hash(uint64_t start) const {
  start = fnv1a(memory_of(labels_), start);
  start = fnv1a(memory_of(starts_), start);
  return fnv1a(memory_of(tokens_), start);
}

ExampleSet::ExampleSet(const std::string& folder, const std::string& scheme,
                       ExampleLayout layout)
    : layout_(layout), folder_(folder), shards_(std::make_unique<ShardSet>(folder)) {
  if (shards_->manifest().scheme != scheme)
    throw DataError(manifest_file(), -1,
                    "a set of scheme '" + scheme + "', got '" +
                        shards_->manifest().scheme.substr(0, 40) + "'");
  for (const std::string& name : shards_->splits()) {
    const Shard& shard = shards_->split(name);
    const int64_t parts = layout.paired ? 2 : 1;
    if (shard.sequences() % parts != 0)
      throw DataError(folder + "/" + name + ".bin", -1, "pairs of sequences");
    for (int64_t i = 0; layout.labelled && i < shard.sequences(); i += parts)
      if (shard.length(i) < 1)
        throw DataError(folder + "/" + name + ".bin", -1,
                        "a label in sequence " + std::to_string(i));
    splits_.emplace(name, ExampleSplit(layout, shard, number("vocabulary")));
  }
}

void ExampleSet::add(const std::string& split, const Example& example) {
  splits_.try_emplace(split, layout_).first->second.add(example);
}

std::vector<std::string> ExampleSet::splits() const {
  std::vector<std::string> names;
  for (const auto& [name, split] : splits_) names.push_back(name);
  return names;
}

const ExampleSplit& ExampleSet::split(const std::string& name) const {
  const auto found = splits_.find(name);
  if (found != splits_.end()) return found->second;
  std::string all;
  for (const std::string& one : splits()) all += (all.empty() ? "" : ", ") + one;
  throw std::invalid_argument("no split '" + name + "'; the data has " + all);
}

std::string ExampleSet::info(const std::string& key) const {
  if (!shards_) return "";
  const auto& info = shards_->manifest().info;
  const auto found = info.find(key);
  return found == info.end() ? "" : found->second;
}

std::vector<std::string> ExampleSet::class_names() const {
  std::vector<std::string> names;
  if (info("class_0").empty()) return names;
  const int64_t classes = number("classes");
  for (int64_t i = 0; i < classes; ++i) {
    const std::string key = "class_" + std::to_string(i);
    if (!shards_->manifest().info.contains(key))
      throw DataError(manifest_file(), -1,
                      "a name for each of " + std::to_string(classes) +
                          " classes, got none as info." + key);
    names.push_back(info(key));
  }
  return names;
}

void ExampleSet::expect_vocabulary(int64_t vocabulary) const {
  if (!shards_ || number("vocabulary") == vocabulary) return;
  throw DataError(
      manifest_file(), -1,
      std::to_string(vocabulary) + " as info.vocabulary, got " + info("vocabulary"));
}

int64_t ExampleSet::number(const std::string& key) const {
  const std::string text = info(key);
  int64_t number = -1;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0 ||
      number > INT32_MAX)
    throw DataError(
        manifest_file(), -1,
        "a whole number as info." + key + ", got '" + text.substr(0, 40) + "'");
  return number;
}

uint64_t ExampleSet::hash() const {
  if (shards_) return shards_->hash();
  uint64_t hash = kFnv1aStart;
  for (const auto& [name, split] : splits_)
    hash = split.hash(fnv1a(bytes_of(name + "\n"), hash));
  return hash;
}

ExampleWriter::ExampleWriter(const std::string& folder, ShardManifest manifest,
                             ExampleLayout layout, int64_t classes)
    : layout_(layout), writer_(folder, with_classes(std::move(manifest), classes)) {}

void ExampleWriter::note_classes(const std::vector<std::string>& names) {
  note("classes", std::ssize(names));
  for (size_t i = 0; i < names.size(); ++i)
    writer_.note("class_" + std::to_string(i), names[i]);
}

void ExampleWriter::add(const std::string& split, const Example& example) {
  std::vector<int32_t> first;
  if (layout_.labelled) first.push_back(example.label);
  first.insert(first.end(), example.first.begin(), example.first.end());
  writer_.add(split, first);
  if (layout_.paired) writer_.add(split, example.second);
}

}  // namespace lagwise::data
