#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lagwise::data {

/// What one element of an array is; little endian, as on every machine we run on.
enum class NpyType { float64, float32, int64, int32, boolean };

/// The name NumPy gives the type: "float64".
std::string_view name_of(NpyType type);

/// An array as NumPy's `np.save` stores it.
///
///     file  = "\x93NUMPY" major minor length header elements
///     header = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 7), }" ... "\n"
///
/// Read are versions 1 and 2 (they differ in the width of `length`), row by row or column
/// by column ("Fortran order"), of the types above. All else is a DataError that names the
/// byte.
struct NpyArray {
  NpyType type = NpyType::float64;
  std::vector<int64_t> shape;  ///< empty: a single number
  std::string bytes;           ///< the elements, row by row

  int64_t numel() const;
  int64_t item_size() const;
};

/// Reads a file of at most `longest` bytes; its size is known before memory is taken.
NpyArray read_npy(const std::string& file, int64_t longest = int64_t{1} << 30);

/// Reads the contents of a file; `file` is its name in messages. Memory taken is at
/// most that of `contents` again, whatever the header claims.
NpyArray parse_npy(std::string_view contents, const std::string& file);

}  // namespace lagwise::data
