#pragma once

#include <string>
#include <vector>

#include "lagwise/data/formats/bytes.h"

namespace lagwise::data {

/// An array of bytes with a shape, as MNIST's files hold it:
///
///     0 0 8 d | d sizes, 4 bytes each, big-endian | the bytes, last index fastest
///
/// (8 says "unsigned byte"; the format's other types are refused).
struct IdxArray {
  std::vector<int64_t> shape;  ///< 1 to 4 dimensions
  std::vector<uint8_t> bytes;

  int64_t size() const { return shape[0]; }  ///< how many items
  Bytes item(int64_t index) const;           ///< one image, or one label
};

/// Reads a file, packed with gzip or plain; at most 256 MB of bytes. Offsets in
/// messages about a packed file count its unpacked bytes.
IdxArray read_idx(const std::string& file);
IdxArray parse_idx(const std::string& name, Bytes bytes);

}  // namespace lagwise::data
