#include "lagwise/data/formats/idx.h"

#include "lagwise/data/formats/byte_cursor.h"
#include "lagwise/data/formats/gunzip.h"
#include "lagwise/data/formats/mapped_file.h"

namespace lagwise::data {
namespace {

constexpr uint64_t kMost = uint64_t{256} << 20;

IdxArray parse_plain(const std::string& name, Bytes bytes) {
  ByteCursor cursor(name, bytes);
  const auto magic = cursor.big_endian<uint16_t>("two zeros");
  if (magic != 0) cursor.fail_at(0, "two zeros, the start of an idx file");
  if (cursor.byte("type") != 8) cursor.fail_at(2, "type 8, unsigned bytes");
  const int dimensions = cursor.byte("number of dimensions");
  if (dimensions < 1 || dimensions > 4) cursor.fail_at(3, "1 to 4 dimensions");
  IdxArray array;
  uint64_t total = 1;
  for (int i = 0; i < dimensions; ++i) {
    const size_t start = cursor.offset();
    const auto size = cursor.big_endian<uint32_t>("size of a dimension");
    // An item of no bytes would make any count of items fit.
    if (i > 0 && size == 0) cursor.fail_at(start, "a size above zero");
    array.shape.push_back(size);
    total *= size;  // both below 2^32
    if (total > kMost) cursor.fail_at(start, "at most 256 MB in all");
  }
  const Bytes data = cursor.take(total, "the array");
  if (!cursor.done()) cursor.fail("the end of the file after the array");
  array.bytes.assign(data.begin(), data.end());
  return array;
}

}  // namespace

Bytes IdxArray::item(int64_t index) const {
  const size_t size = bytes.size() / static_cast<size_t>(shape[0]);
  return Bytes(bytes).subspan(static_cast<size_t>(index) * size, size);
}

IdxArray parse_idx(const std::string& name, Bytes bytes) {
  if (!is_gzip(bytes)) return parse_plain(name, bytes);
  const std::vector<uint8_t> unpacked = gunzip(name, bytes, kMost + 32);
  return parse_plain(name, unpacked);
}

IdxArray read_idx(const std::string& file) {
  const MappedFile mapped(file);
  return parse_idx(file, mapped.bytes());
}

}  // namespace lagwise::data
