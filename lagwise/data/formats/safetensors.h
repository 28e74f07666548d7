#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lagwise/core/line_vector.h"
#include "lagwise/data/formats/atomic_file.h"
#include "lagwise/data/formats/bytes.h"
#include "lagwise/data/formats/mapped_file.h"

namespace lagwise::data {

/// One tensor of a file: row-major, little-endian, its bytes owned by somebody else
/// and aligned to nothing.
struct StoredTensor {
  std::string name;
  std::string dtype;  ///< F64 F32 F16 BF16 F8_E4M3 F8_E5M2 I64 .. I8, U64 .. U8, BOOL
  std::vector<int64_t> shape;
  Bytes bytes;
};

/// The bytes of one element; 0 for a dtype the format does not have.
size_t dtype_size(std::string_view dtype);

/// A safetensors file (github.com/huggingface/safetensors), the format of our
/// checkpoints:
///
///     length of the header, 8 bytes little-endian
///     header: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ..,
///              "__metadata__": {"key": "text", ..}}, padded with spaces
///     the data, in which the tensors stand without gap or overlap
///
/// Opening checks all of it, and reads no tensor. Whatever is wrong is a DataError:
/// a file cut short at any byte never opens.
///
/// Requires  header at most 16 MB, at most 16 dimensions a tensor.
class Safetensors {
 public:
  /// Maps the file; the tensors live as long as this object.
  explicit Safetensors(const std::string& file);
  /// Over bytes in memory, which must outlive this object.
  Safetensors(const std::string& name, Bytes bytes);

  /// In the order of their data.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  /// nullptr: there is none of that name.
  const StoredTensor* find(std::string_view name) const;

 private:
  void read(const std::string& file, Bytes bytes);

  std::optional<MappedFile> mapped_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// Writes a safetensors file, whole or not at all (data/formats/atomic_file.h). The same
/// tensors give the same bytes, in whatever order they come: widest elements first,
/// so that all are aligned, then by name. std::invalid_argument for a name given
/// twice, an unknown dtype, or bytes that do not fit the shape. Returns the FNV-1a hash
/// of the file.
uint64_t write_safetensors(const std::string& file, std::vector<StoredTensor> tensors,
                           const std::map<std::string, std::string>& metadata = {},
                           FileCalls calls = {});

/// The bytes of such a file.
LineVector<uint8_t> safetensors_bytes(
    std::vector<StoredTensor> tensors,
    const std::map<std::string, std::string>& metadata = {});

}  // namespace lagwise::data
