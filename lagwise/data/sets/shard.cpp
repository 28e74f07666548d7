#include "lagwise/data/sets/shard.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "lagwise/data/formats/byte_cursor.h"

namespace lagwise::data {
namespace {

constexpr std::string_view kShardMagic = "LWSHARD1";
constexpr size_t kHeader = 16;

size_t width_for(int64_t vocabulary) {
  if (vocabulary < 1 || vocabulary > INT32_MAX)
    throw std::invalid_argument("shard: expected a vocabulary of 1 to 2^31 - 1, got " +
                                std::to_string(vocabulary));
  return vocabulary <= 1 << 16 ? 2 : 4;
}

uint64_t number_at(Bytes bytes, size_t at, size_t width) {
  uint64_t value = 0;
  for (size_t i = 0; i < width; ++i) value |= uint64_t{bytes[at + i]} << 8 * i;
  return value;
}

}  // namespace

ShardWriter::ShardWriter(const std::string& file, int64_t vocabulary)
    : out_(file), vocabulary_(vocabulary), width_(width_for(vocabulary)) {
  put(bytes_of(kShardMagic));
  put_number(static_cast<uint32_t>(width_));
  put_number(uint32_t{0});
}

void ShardWriter::put(Bytes bytes) {
  out_.write(bytes);
  hash_ = fnv1a(bytes, hash_);
  bytes_ += bytes.size();
}

template <class Number>
void ShardWriter::put_number(Number number) {
  std::array<uint8_t, sizeof(Number)> bytes;
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<uint8_t>(uint64_t{number} >> 8 * i);
  put(bytes);
}

void ShardWriter::add(std::span<const int32_t> ids) {
  std::vector<uint8_t> bytes;
  bytes.reserve(ids.size() * width_);
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocabulary_)
      throw std::invalid_argument("shard: expected ids below " +
                                  std::to_string(vocabulary_) + ", got " +
                                  std::to_string(id));
    for (size_t i = 0; i < width_; ++i)
      bytes.push_back(static_cast<uint8_t>(static_cast<uint32_t>(id) >> 8 * i));
  }
  put(bytes);
  starts_.push_back(starts_.back() + ids.size());
}

void ShardWriter::commit() {
  while (bytes_ % 8 != 0) put_number(uint8_t{0});
  for (const uint64_t start : starts_) put_number(start);
  put_number(static_cast<uint64_t>(sequences()));
  out_.commit();
}

Shard::Shard(const std::string& file, int64_t vocabulary)
    : name_(file), mapped_(file), bytes_(mapped_->bytes()), vocabulary_(vocabulary) {
  check();
}

Shard::Shard(const std::string& name, Bytes bytes, int64_t vocabulary)
    : name_(name), bytes_(bytes), vocabulary_(vocabulary) {
  check();
}

void Shard::check() {
  ByteCursor cursor(name_, bytes_);
  if (text_of(cursor.take(kShardMagic.size(), "LWSHARD1")) != kShardMagic)
    cursor.fail_at(0, "LWSHARD1, the start of a shard");
  width_ = cursor.little_endian<uint32_t>("width");
  if (width_ != width_for(vocabulary_))
    cursor.fail_at(8, "tokens of " + std::to_string(width_for(vocabulary_)) +
                          " bytes for this vocabulary, got " + std::to_string(width_));
  if (cursor.little_endian<uint32_t>("zero") != 0) cursor.fail_at(12, "zero");
  const size_t end = bytes_.size() - 8;
  if (bytes_.size() < kHeader + 16 || bytes_.size() % 8 != 0)
    cursor.fail("tokens and their table in a multiple of 8 bytes");
  const uint64_t sequences = number_at(bytes_, end, 8);
  if (sequences > (end - kHeader) / 8 - 1)
    cursor.fail_at(end, "a number of sequences whose table fits the file");
  table_ = end - 8 * (sequences + 1);
  sequences_ = static_cast<int64_t>(sequences);
  const uint64_t room = (table_ - kHeader) / width_;
  uint64_t last = 0;
  for (int64_t i = 0; i <= sequences_; ++i) {
    if (i == 0 ? start(0) != 0 : start(i) < last || start(i) > room)
      cursor.fail_at(table_ + 8 * static_cast<size_t>(i),
                     "starts that rise within the tokens");
    last = start(i);
  }
  if ((kHeader + last * width_ + 7) / 8 * 8 != table_)
    cursor.fail_at(table_, "the table right behind the tokens");
  tokens_ = static_cast<int64_t>(last);
}

uint64_t Shard::start(int64_t sequence) const {
  return number_at(bytes_, table_ + 8 * static_cast<size_t>(sequence), 8);
}

void Shard::append(Shard next) {
  if (next.vocabulary_ != vocabulary_)
    throw std::invalid_argument(
        "shard: expected the same vocabulary in all of a split");
  more_sequences_ += next.sequences(), more_tokens_ += next.tokens();
  more_.push_back(std::move(next));
}

std::vector<int64_t> Shard::ends() const {
  std::vector<int64_t> ends = {tokens_};
  for (const Shard& shard : more_) ends.push_back(ends.back() + shard.tokens());
  return ends;
}

int64_t Shard::length(int64_t sequence) const {
  if (sequence < 0 || sequence >= sequences())
    throw std::out_of_range("shard: expected a sequence below " +
                            std::to_string(sequences()) + ", got " +
                            std::to_string(sequence));
  if (sequence >= sequences_) {
    sequence -= sequences_;
    for (const Shard& shard : more_) {
      if (sequence < shard.sequences()) return shard.length(sequence);
      sequence -= shard.sequences();
    }
  }
  return static_cast<int64_t>(start(sequence + 1) - start(sequence));
}

void Shard::read(int64_t sequence, int64_t first, std::span<int64_t> out) const {
  const int64_t size = length(sequence);
  if (first < 0 || first > size || static_cast<int64_t>(out.size()) > size - first)
    throw std::out_of_range("shard: expected tokens within the sequence's " +
                            std::to_string(size));
  if (sequence < sequences_)
    return read_own(static_cast<int64_t>(start(sequence)) + first, out);
  sequence -= sequences_;
  for (const Shard& shard : more_) {
    if (sequence < shard.sequences()) return shard.read(sequence, first, out);
    sequence -= shard.sequences();
  }
}

void Shard::read(int64_t first, std::span<int64_t> out) const {
  const auto count = static_cast<int64_t>(out.size());
  if (first < 0 || first > tokens() || count > tokens() - first)
    throw std::out_of_range("shard: expected tokens within " +
                            std::to_string(tokens()));
  const int64_t own = std::clamp<int64_t>(tokens_ - first, 0, count);
  if (own > 0) read_own(first, out.first(static_cast<size_t>(own)));
  out = out.subspan(static_cast<size_t>(own));
  first = std::max<int64_t>(0, first - tokens_);
  for (const Shard& shard : more_) {
    const auto here = static_cast<size_t>(std::clamp<int64_t>(
        shard.tokens() - first, 0, static_cast<int64_t>(out.size())));
    if (here > 0) shard.read(first, out.first(here));
    out = out.subspan(here);
    first = std::max<int64_t>(0, first - shard.tokens());
  }
}

void Shard::will_read(int64_t first, int64_t count) const {
  const int64_t own = std::clamp<int64_t>(tokens_ - first, 0, count);
  if (own > 0 && mapped_)
    mapped_->will_read(kHeader + static_cast<size_t>(first) * width_,
                       static_cast<size_t>(own) * width_);
  count -= own, first = std::max<int64_t>(0, first - tokens_);
  for (const Shard& shard : more_) {
    const int64_t here = std::clamp<int64_t>(shard.tokens() - first, 0, count);
    if (here > 0) shard.will_read(first, here);
    count -= here, first = std::max<int64_t>(0, first - shard.tokens());
  }
}

void Shard::read_own(int64_t first, std::span<int64_t> out) const {
  size_t at = kHeader + static_cast<size_t>(first) * width_;
  for (int64_t& token : out) {
    token = static_cast<int64_t>(number_at(bytes_, at, width_));
    if (token >= vocabulary_)
      throw DataError(name_, static_cast<int64_t>(at),
                      "a token below " + std::to_string(vocabulary_) + ", got " +
                          std::to_string(token));
    at += width_;
  }
}

}  // namespace lagwise::data
