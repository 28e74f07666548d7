#include "lagwise/data/sets/language_corpus.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <iterator>
#include <stdexcept>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/fnv1a.h"
#include "lagwise/data/formats/path_kind.h"
#include "lagwise/data/sets/split_file.h"
#include "lagwise/data/sets/text_corpus.h"

namespace lagwise::data {
namespace {

constexpr const char* kSplits[] = {"train", "valid", "test"};

}  // namespace

TokenStream::TokenStream(const Shard* shard, bool documents) : shard_(shard) {
  documents_ = {{0, shard->tokens()}}, crop_ends_ = shard->ends();
  if (!documents) return;
  documents_.clear(), crop_ends_.clear();
  for (int64_t i = 0, begin = 0; i < shard->sequences(); ++i) {
    documents_.push_back({begin, begin + shard->length(i)});
    crop_ends_.push_back(begin = documents_.back().end);
  }
}

void TokenStream::append(Bytes part) {
  if (part.empty()) return;
  parts_.push_back(part);
  starts_.push_back(size_);
  size_ += static_cast<int64_t>(part.size());
  documents_ = {{0, size_}}, crop_ends_ = {size_};
}

int64_t TokenStream::longest() const {
  int64_t longest = 0;
  for (const Document& document : documents_)
    longest = std::max(longest, document.length());
  return longest;
}

void TokenStream::read(int64_t first, std::span<int64_t> out) const {
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

LanguageCorpus::LanguageCorpus(const std::string& path, double valid, double test)
    : path_(path) {
  if (is_shard_set(path))
    open_set();
  else if (!is_folder(path) || !(open_wikitext_files(valid) || open_split_files(valid)))
    open_plain(valid, test);
  for (const auto& [name, stream] : splits_)
    if (stream.size() == 0)
      throw DataError(path, -1, "text in the split " + name + ", got none");
}

void LanguageCorpus::open_set() {
  shards_ = std::make_unique<ShardSet>(path_);
  const ShardManifest& manifest = shards_->manifest();
  if (manifest.scheme == "tokenizer") {
    const std::string file = path_ + "/" + kTokenizerFile;
    tokenizer_ = load_tokenizer(file);
    if (const auto made = manifest.info.find("tokenizer");
        made == manifest.info.end() || made->second != hash_text(tokenizer_->hash()) ||
        tokenizer_->vocabulary() != manifest.vocabulary)
      throw DataError(file, -1, "the tokenizer that the set was made with");
  } else if (manifest.scheme != "bytes") {
    throw DataError(path_ + "/manifest.json", -1,
                    "a set of scheme 'bytes' or 'tokenizer', got '" +
                        manifest.scheme.substr(0, 40) + "'");
  } else if (manifest.vocabulary != 256) {
    throw DataError(
        path_ + "/manifest.json", -1,
        "a vocabulary of 256 bytes, got " + std::to_string(manifest.vocabulary));
  }
  for (const std::string& name : shards_->splits())
    splits_.emplace(name, TokenStream(&shards_->split(name),
                                      manifest.info.contains(kDocumentsKept)));
  if (splits_.empty()) throw DataError(path_, -1, "at least one split, got none");
}

bool LanguageCorpus::open_wikitext_files(double valid) {
  std::map<std::string, std::vector<TextFile>> texts;
  for (const char* split : kSplits) {
    const std::string stem = path_ + "/wiki." + split;
    if (is_there(stem + ".tokens") || is_there(stem + ".raw"))
      texts[split].push_back(open_wikitext(path_, split));
  }
  take_splits(texts, valid);
  return !texts.empty();
}

bool LanguageCorpus::open_split_files(double valid) {
  std::map<std::string, std::string> paths;
  for (const char* split : kSplits)
    if (const std::string found = find_split_file(
            path_, split, {".txt", ".jsonl", ".txt.gz", ".jsonl.gz", "/"});
        !found.empty())
      paths[split] = found;
  if (!paths.contains("train") || paths.size() < 2) return false;
  std::map<std::string, std::vector<TextFile>> texts;
  for (const auto& [split, path] : paths) texts[split] = open_text(path);
  take_splits(texts, valid);
  return true;
}

/// Of texts by split; without one to validate on, the end of train is it.
void LanguageCorpus::take_splits(std::map<std::string, std::vector<TextFile>>& texts,
                                 double valid) {
  if (texts.contains("train")) {
    files_ = std::move(texts["train"]);
    const int64_t all = bytes_of_files();
    int64_t trained = all;
    if (!texts.contains("valid"))
      trained -= static_cast<int64_t>(valid * static_cast<double>(all));
    take_part("train", 0, trained);
    if (trained < all) take_part("valid", trained, all);
  }
  for (const char* split : {"valid", "test"})
    if (texts.contains(split))
      for (TextFile& file : texts[split]) {
        splits_[split].append(file.bytes());
        files_.push_back(std::move(file));
      }
}

int64_t LanguageCorpus::bytes_of_files() const {
  int64_t all = 0;
  for (const TextFile& file : files_) all += static_cast<int64_t>(file.bytes().size());
  return all;
}

void LanguageCorpus::open_plain(double valid, double test) {
  files_ = open_text(path_);
  const int64_t all = bytes_of_files();
  const auto part = [&](double fraction) {
    return static_cast<int64_t>(fraction * static_cast<double>(all));
  };
  const int64_t tested = all - part(test), validated = tested - part(valid);
  take_part("train", 0, validated);
  if (valid > 0) take_part("valid", validated, tested);
  if (test > 0) take_part("test", tested, all);
}

void LanguageCorpus::take_part(const std::string& split, int64_t begin, int64_t end) {
  TokenStream& stream = splits_[split];
  int64_t start = 0;  // of the file
  for (const TextFile& file : files_) {
    const auto size = static_cast<int64_t>(file.bytes().size());
    const int64_t first = std::clamp<int64_t>(begin - start, 0, size);
    const int64_t last = std::clamp<int64_t>(end - start, 0, size);
    stream.append(file.bytes().subspan(static_cast<size_t>(first),
                                       static_cast<size_t>(last - first)));
    start += size;
  }
}

std::vector<std::string> LanguageCorpus::splits() const {
  std::vector<std::string> names;
  for (const auto& [name, stream] : splits_) names.push_back(name);
  return names;
}

std::vector<Bytes> LanguageCorpus::documents(const std::string& split) const {
  std::map<const uint8_t*, const uint8_t*> ends;  // of the parts, by where they begin
  for (const Bytes part : this->split(split).parts())
    ends[part.data()] = part.data() + part.size();
  std::vector<Bytes> all;
  for (const TextFile& file : files_)
    for (const Bytes document : documents_of(file)) {
      const uint8_t* const middle = document.data() + document.size() / 2;
      const auto after = ends.upper_bound(middle);
      if (after != ends.begin() && std::less<>()(middle, std::prev(after)->second))
        all.push_back(document);
    }
  return all;
}

std::vector<std::string> LanguageCorpus::files() const {
  std::vector<std::string> names;
  for (const TextFile& file : files_) names.push_back(file.name());
  return names;
}

const TokenStream& LanguageCorpus::split(const std::string& name) const {
  const auto found = splits_.find(name);
  if (found != splits_.end()) return found->second;
  std::string all;
  for (const std::string& one : splits()) all += (all.empty() ? "" : ", ") + one;
  throw std::invalid_argument("no split '" + name + "' in " + path_ + "; it has " +
                              all);
}

/// A number that the maker of a set kept; 0: none.
int64_t LanguageCorpus::noted(const std::string& key) const {
  int64_t number = 0;
  const auto& info = shards_->manifest().info;
  if (const auto found = info.find(key); found != info.end())
    std::from_chars(found->second.data(), found->second.data() + found->second.size(),
                    number);
  return number;
}

int64_t LanguageCorpus::bytes(const std::string& split) const {
  return tokenizer_ ? noted("bytes_" + split) : this->split(split).size();
}

int64_t LanguageCorpus::unknown(const std::string& split) const {
  return tokenizer_ ? noted("unknown_" + split) : 0;
}

int64_t LanguageCorpus::words(const std::string& split) const {
  if (shards_) return noted("words_" + split);
  int64_t words = 0;
  for (const Bytes part : this->split(split).parts()) words += wikitext_words(part);
  return words;
}

TextExtent LanguageCorpus::extent(const std::string& split, int64_t longer) const {
  const TokenStream& text = this->split(split);
  if (!text.keeps_documents())
    return {text.size(), bytes(split), words(split), unknown(split)};
  TextExtent all;
  for (const Document& document : text.documents()) {
    if (document.length() <= longer) continue;
    std::vector<int64_t> tokens(static_cast<size_t>(document.length()));
    text.read(document.begin, tokens);
    std::string decoded;
    for (const int64_t token : tokens)
      decoded += tokenizer_ ? tokenizer_->decode(static_cast<int32_t>(token))
                            : std::string(1, static_cast<char>(token));
    all.tokens += document.length();
    all.bytes += std::ssize(decoded);
    all.words += wikitext_words(bytes_of(decoded));
    if (tokenizer_) all.unknown += std::ranges::count(tokens, tokenizer_->unknown());
  }
  return all;
}

uint64_t LanguageCorpus::hash() const {
  if (shards_) {
    uint64_t hash = shards_->hash();
    if (tokenizer_) hash = fnv1a(bytes_of(hash_text(tokenizer_->hash())), hash);
    if (shards_->manifest().info.contains(kDocumentsKept))
      hash = fnv1a(bytes_of(kDocumentsKept), hash);
    return hash;
  }
  uint64_t hash = kFnv1aStart;
  for (const auto& [name, stream] : splits_) {
    hash = fnv1a(bytes_of(name + "\n"), hash);
    for (const Bytes part : stream.parts()) hash = fnv1a(part, hash);
  }
  return hash;
}

}  // namespace lagwise::data
