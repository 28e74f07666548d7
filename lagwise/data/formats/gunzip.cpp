#include "lagwise/data/formats/gunzip.h"

#include <zlib.h>

#include <algorithm>
#include <new>

#include "lagwise/core/errors.h"

namespace lagwise::data {
namespace {

/// zlib's state, ended whatever happens.
struct Inflater {
  z_stream stream{};
  Inflater() {
    constexpr int kGzipOnly = 16;
    if (inflateInit2(&stream, MAX_WBITS + kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream); }
};

}  // namespace

bool is_gzip(Bytes bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1F && bytes[1] == 0x8B;
}

std::vector<uint8_t> gunzip(const std::string& file, Bytes packed, size_t most) {
  constexpr size_t kPiece = size_t{1} << 20;  // also what zlib counts in: 32 bits
  Inflater inflater;
  z_stream& z = inflater.stream;
  std::vector<uint8_t> out;
  size_t fed = 0;
  const auto fail = [&](const std::string& expected) {
    throw DataError(file, static_cast<int64_t>(fed - z.avail_in), expected);
  };
  for (bool ended = false; !ended || fed - z.avail_in < packed.size();) {
    if (ended && inflateReset(&z) != Z_OK) fail("a gzip member");
    if (z.avail_in == 0) {
      const size_t piece = std::min(kPiece, packed.size() - fed);
      z.next_in = const_cast<uint8_t*>(packed.data() + fed);
      z.avail_in = static_cast<uInt>(piece);
      fed += piece;
    }
    const size_t before = out.size(), room = std::min(kPiece, most - before);
    out.resize(before + std::max<size_t>(room, 1));  // a byte too many shows excess
    z.next_out = out.data() + before;
    z.avail_out = static_cast<uInt>(out.size() - before);
    const int result = inflate(&z, Z_NO_FLUSH);
    out.resize(out.size() - z.avail_out);
    if (out.size() > most) fail("at most " + std::to_string(most) + " bytes unpacked");
    if (result == Z_BUF_ERROR) fail("more of the gzip file");
    if (result != Z_OK && result != Z_STREAM_END)
      fail(std::string("gzip data: ") + (z.msg ? z.msg : "damaged"));
    ended = result == Z_STREAM_END;
  }
  return out;
}

}  // namespace lagwise::data
