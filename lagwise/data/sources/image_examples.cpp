#include "lagwise/data/sources/image_examples.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/cifar10.h"
#include "lagwise/data/formats/idx.h"
#include "lagwise/data/formats/path_kind.h"
#include "lagwise/data/sources/picture_folder.h"

namespace lagwise::data {
namespace {

/// Tells train from valid by the number of an image, and keeps count.
class Splitter {
 public:
  Splitter(double valid, int64_t train, int64_t test, const VisitExample& visit)
      : first_valid_(train - std::llround(valid * static_cast<double>(train))),
        all_(static_cast<double>(train + test)),
        visit_(visit) {}

  void train(const Example& example) {
    const char* split = seen_ < first_valid_ ? "train" : "valid";
    visit_(split, example, done());
  }
  void test(const Example& example) { visit_("test", example, done()); }

 private:
  double done() { return static_cast<double>(++seen_) / all_; }

  int64_t first_valid_, seen_ = 0;
  double all_;
  const VisitExample& visit_;
};

ImageShape read_cifar10(const ImageReading& reading, const VisitExample& visit) {
  constexpr auto kSide = static_cast<int64_t>(Cifar10::kSide);
  check_patch("images", reading.patch, kSide);
  std::vector<Cifar10> batches;
  int64_t train = 0;
  for (int n = 1; n <= 5; ++n) {
    const std::string file = reading.path + "/data_batch_" + std::to_string(n) + ".bin";
    if (n > 1 && !is_there(file)) continue;
    train += batches.emplace_back(file).size();
  }
  const Cifar10 test(reading.path + "/test_batch.bin");
  Splitter splitter(reading.valid, train, test.size(), visit);
  const auto example = [&](const Cifar10& from, int64_t i) -> Example {
    if (reading.colour)
      return {from.label(i), image_patches(from.image(i), kSide, reading.patch), {}};
    return {from.label(i), image_patches(from.grey(i), kSide, reading.patch), {}};
  };
  for (const Cifar10& batch : batches)
    for (int64_t i = 0; i < batch.size(); ++i) splitter.train(example(batch, i));
  for (int64_t i = 0; i < test.size(); ++i) splitter.test(example(test, i));
  return {kSide / reading.patch,
          reading.patch * reading.patch * (reading.colour ? 3 : 1),
          {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse",
           "ship", "truck"}};
}

std::string idx_file(const std::string& folder, const std::string& name) {
  const std::string plain = folder + "/" + name;
  return is_there(plain) ? plain : plain + ".gz";
}

/// Images [n, side, side] and their labels [n].
struct Digits {
  IdxArray images, labels;

  Digits(const std::string& folder, const std::string& split) {
    const std::string image_file = idx_file(folder, split + "-images-idx3-ubyte");
    const std::string label_file = idx_file(folder, split + "-labels-idx1-ubyte");
    images = read_idx(image_file);
    labels = read_idx(label_file);
    if (images.shape.size() != 3 || images.shape[1] != images.shape[2] ||
        images.shape[1] < 1 || images.size() < 1)
      throw DataError(image_file, -1, "square images");
    if (labels.shape.size() != 1 || labels.size() != images.size())
      throw DataError(label_file, -1,
                      std::to_string(images.size()) + " labels, one for each image");
    if (*std::ranges::max_element(labels.bytes) > 9)
      throw DataError(label_file, -1, "labels from 0 to 9");
  }
};

ImageShape read_mnist(const ImageReading& reading, const VisitExample& visit) {
  if (reading.colour)
    throw std::invalid_argument("images: MNIST is grey; expected colour=false");
  const Digits train(reading.path, "train"), test(reading.path, "t10k");
  const int64_t side = train.images.shape[1];
  if (test.images.shape[1] != side)
    throw DataError(reading.path, -1, "images of one size in train and t10k");
  check_patch("images", reading.patch, side);
  Splitter splitter(reading.valid, train.images.size(), test.images.size(), visit);
  const auto example = [&](const Digits& from, int64_t i) -> Example {
    return {from.labels.item(i)[0],
            image_patches(from.images.item(i), side, reading.patch),
            {}};
  };
  for (int64_t i = 0; i < train.images.size(); ++i) splitter.train(example(train, i));
  for (int64_t i = 0; i < test.images.size(); ++i) splitter.test(example(test, i));
  return {side / reading.patch, reading.patch * reading.patch};
}

}  // namespace

std::vector<int32_t> image_patches(Bytes planes, int64_t side, int64_t patch) {
  const auto s = static_cast<size_t>(side), p = static_cast<size_t>(patch);
  const size_t channels = planes.size() / (s * s);
  std::vector<int32_t> out;
  out.reserve(planes.size());
  for (size_t top = 0; top < s; top += p)
    for (size_t left = 0; left < s; left += p)
      for (size_t y = top; y < top + p; ++y)
        for (size_t x = left; x < left + p; ++x)
          for (size_t c = 0; c < channels; ++c)
            out.push_back(planes[(c * s + y) * s + x]);
  return out;
}

void check_patch(const std::string& task, int64_t patch, int64_t side) {
  if (patch < 1 || side % patch != 0)
    throw std::invalid_argument(task + ": expected a patch that divides " +
                                std::to_string(side) + ", got " +
                                std::to_string(patch));
}

ImageShape read_image_examples(const ImageReading& reading, const VisitExample& visit) {
  if (is_there(reading.path + "/data_batch_1.bin")) return read_cifar10(reading, visit);
  if (is_there(idx_file(reading.path, "train-images-idx3-ubyte")))
    return read_mnist(reading, visit);
  if (picture_classes(reading.path) > 0) return read_picture_folder(reading, visit);
  throw DataError(
      reading.path, -1,
      "a folder with data_batch_1.bin (CIFAR-10), train-images-idx3-ubyte, or "
      ".gz (MNIST), or a folder of .png or .jpg for each class");
}

}  // namespace lagwise::data
