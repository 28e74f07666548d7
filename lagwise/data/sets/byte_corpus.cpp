#include "lagwise/data/sets/byte_corpus.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <stdexcept>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/fnv1a.h"
#include "lagwise/data/sets/text_corpus.h"

namespace lagwise::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSplits[] = {"train", "valid", "test"};

}  // namespace

void ByteStream::append(Bytes part) {
  if (part.empty()) return;
  parts_.push_back(part);
  starts_.push_back(size_);
  size_ += static_cast<int64_t>(part.size());
}

void ByteStream::read(int64_t first, std::span<int64_t> out) const {
  if (shard_) return shard_->read(first, out);
  if (first < 0 || first + static_cast<int64_t>(out.size()) > size_)
    throw std::out_of_range("corpus: read beyond the end");
  if (out.empty()) return;
  auto at = static_cast<size_t>(
      std::upper_bound(starts_.begin(), starts_.end(), first) - starts_.begin() - 1);
  auto skip = static_cast<size_t>(first - starts_[at]);
  for (size_t done = 0; done < out.size(); ++at, skip = 0) {
    const size_t many = std::min(parts_[at].size() - skip, out.size() - done);
    std::copy_n(parts_[at].begin() + static_cast<int64_t>(skip), many,
                out.begin() + static_cast<int64_t>(done));
    done += many;
  }
}

ByteCorpus::ByteCorpus(const std::string& path, double valid, double test)
    : path_(path) {
  if (is_shard_set(path))
    open_set();
  else if (!fs::is_directory(path) || !(open_wikitext_files() || open_split_files()))
    open_plain(valid, test);
  for (const auto& [name, stream] : splits_)
    if (stream.size() == 0)
      throw DataError(path, -1, "text in the split " + name + ", got none");
}

void ByteCorpus::open_set() {
  shards_ = std::make_unique<ShardSet>(path_);
  if (shards_->manifest().scheme != "bytes")
    throw DataError(path_ + "/manifest.json", -1,
                    "a set of scheme 'bytes', got '" +
                        shards_->manifest().scheme.substr(0, 40) + "'");
  for (const std::string& name : shards_->splits())
    splits_.emplace(name, ByteStream(&shards_->split(name)));
  if (splits_.empty()) throw DataError(path_, -1, "at least one split, got none");
}

bool ByteCorpus::open_wikitext_files() {
  for (const char* split : kSplits) {
    const std::string stem = path_ + "/wiki." + split;
    if (!fs::exists(stem + ".tokens") && !fs::exists(stem + ".raw")) continue;
    files_.push_back(open_wikitext(path_, split));
    splits_[split].append(files_.back().bytes());
  }
  return counts_words_ = !splits_.empty();
}

bool ByteCorpus::open_split_files() {
  if (!fs::exists(path_ + "/train.txt") || !fs::exists(path_ + "/valid.txt"))
    return false;
  for (const char* split : kSplits) {
    const std::string file = path_ + "/" + split + ".txt";
    if (!fs::exists(file)) continue;
    files_.emplace_back(file);
    splits_[split].append(files_.back().bytes());
  }
  return true;
}

void ByteCorpus::open_plain(double valid, double test) {
  files_ = open_text(path_);
  int64_t all = 0;
  for (const MappedFile& file : files_)
    all += static_cast<int64_t>(file.bytes().size());
  const auto part = [&](double fraction) {
    return static_cast<int64_t>(fraction * static_cast<double>(all));
  };
  const int64_t tested = all - part(test), validated = tested - part(valid);
  take_part("train", 0, validated);
  if (valid > 0) take_part("valid", validated, tested);
  if (test > 0) take_part("test", tested, all);
}

void ByteCorpus::take_part(const std::string& split, int64_t begin, int64_t end) {
  ByteStream& stream = splits_[split];
  int64_t start = 0;  // of the file
  for (const MappedFile& file : files_) {
    const auto size = static_cast<int64_t>(file.bytes().size());
    const int64_t first = std::clamp<int64_t>(begin - start, 0, size);
    const int64_t last = std::clamp<int64_t>(end - start, 0, size);
    stream.append(file.bytes().subspan(static_cast<size_t>(first),
                                       static_cast<size_t>(last - first)));
    start += size;
  }
}

std::vector<std::string> ByteCorpus::splits() const {
  std::vector<std::string> names;
  for (const auto& [name, stream] : splits_) names.push_back(name);
  return names;
}

std::vector<std::string> ByteCorpus::files() const {
  std::vector<std::string> names;
  for (const MappedFile& file : files_) names.push_back(file.name());
  return names;
}

const ByteStream& ByteCorpus::split(const std::string& name) const {
  const auto found = splits_.find(name);
  if (found != splits_.end()) return found->second;
  std::string all;
  for (const std::string& one : splits()) all += (all.empty() ? "" : ", ") + one;
  throw std::invalid_argument("no split '" + name + "' in " + path_ + "; it has " +
                              all);
}

int64_t ByteCorpus::words(const std::string& split) const {
  int64_t words = 0;
  if (shards_) {
    const auto& info = shards_->manifest().info;
    if (const auto found = info.find("words_" + split); found != info.end())
      std::from_chars(found->second.data(), found->second.data() + found->second.size(),
                      words);
    return words;
  }
  if (!counts_words_) return 0;
  for (const Bytes part : this->split(split).parts()) words += wikitext_words(part);
  return words;
}

uint64_t ByteCorpus::hash() const {
  if (shards_) return shards_->hash();
  uint64_t hash = kFnv1aStart;
  for (const auto& [name, stream] : splits_) {
    hash = fnv1a(bytes_of(name + "\n"), hash);
    for (const Bytes part : stream.parts()) hash = fnv1a(part, hash);
  }
  return hash;
}

}  // namespace lagwise::data
