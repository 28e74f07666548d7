#pragma once

// Support for tests; never part of the library.

#include <string>

#include "lagwise/data/testing_files.h"
#include "lagwise/data/testing_gzip.h"

namespace lagwise::testing {

/// `many` records of CIFAR-10: image i has label (first + i) mod 10; its red plane
/// counts up from there, green is 2 and blue 3 everywhere.
inline std::string cifar_records(int first, int many) {
  std::string bytes;
  for (int i = first; i < first + many; ++i) {
    bytes += static_cast<char>(i % 10);
    for (int j = 0; j < 1024; ++j) bytes += static_cast<char>((i + j) % 256);
    bytes += std::string(1024, '\2') + std::string(1024, '\3');
  }
  return bytes;
}

inline void put_cifar(const std::string& folder) {
  put(folder + "/data_batch_1.bin", cifar_records(0, 12));
  put(folder + "/data_batch_2.bin", cifar_records(12, 8));
  put(folder + "/test_batch.bin", cifar_records(20, 5));
}

inline std::string big_endian(int number) {
  return {static_cast<char>(number >> 24), static_cast<char>(number >> 16),
          static_cast<char>(number >> 8), static_cast<char>(number)};
}

/// Images of side 4, in pixel j of image i the number i + j; label i mod 10.
inline void put_digits(const std::string& folder, const std::string& split, int many,
                       bool packed) {
  std::string images =
      std::string("\0\0\x8\3", 4) + big_endian(many) + big_endian(4) + big_endian(4);
  std::string labels = std::string("\0\0\x8\1", 4) + big_endian(many);
  for (int i = 0; i < many; ++i) {
    labels += static_cast<char>(i % 10);
    for (int j = 0; j < 16; ++j) images += static_cast<char>(i + j);
  }
  const std::string ending = packed ? ".gz" : "";
  put(folder + "/" + split + "-images-idx3-ubyte" + ending,
      packed ? gzip(images) : images);
  put(folder + "/" + split + "-labels-idx1-ubyte" + ending,
      packed ? gzip(labels) : labels);
}

}  // namespace lagwise::testing
