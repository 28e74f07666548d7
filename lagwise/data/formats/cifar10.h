#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lagwise/data/formats/bytes.h"
#include "lagwise/data/formats/mapped_file.h"

namespace lagwise::data {

/// A batch of CIFAR-10 in its binary form: records of a label (0 to 9) and an image
/// of 32 x 32 pixels as three planes, red, green, blue, row by row. All labels are
/// checked when it is opened.
class Cifar10 {
 public:
  static constexpr size_t kSide = 32, kPlane = kSide * kSide, kImage = 3 * kPlane;

  explicit Cifar10(const std::string& file);
  /// Over bytes in memory, which must outlive this object.
  Cifar10(const std::string& name, Bytes bytes);

  int64_t size() const { return static_cast<int64_t>(bytes_.size() / kRecord); }
  int label(int64_t index) const { return record(index)[0]; }
  Bytes image(int64_t index) const { return record(index).subspan(1); }

  /// The image in grey as the Long Range Arena has it (TensorFlow's
  /// rgb_to_grayscale on bytes): floor((0.2989 R + 0.587 G + 0.114 B) 255.5 / 255).
  std::vector<uint8_t> grey(int64_t index) const;

 private:
  static constexpr size_t kRecord = 1 + kImage;
  void check(const std::string& name) const;
  Bytes record(int64_t index) const {
    return bytes_.subspan(static_cast<size_t>(index) * kRecord, kRecord);
  }

  std::optional<MappedFile> mapped_;
  Bytes bytes_;
};

}  // namespace lagwise::data
