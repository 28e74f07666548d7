#include "lagwise/data/sources/picture_folder.h"

#include <algorithm>
#include <filesystem>
#include <functional>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/picture.h"
#include "lagwise/data/sets/split_dealer.h"

namespace lagwise::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFolders = 1000;  // classes

/// The names in a folder that `wanted` wants, in order. DataError where it cannot be
/// read.
std::vector<std::string> names_in(
    const std::string& folder,
    const std::function<bool(const fs::directory_entry&)>& wanted) {
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end;
       at.increment(failed))
    if (wanted(*at)) names.push_back(at->path().filename().string());
  if (failed) throw DataError(folder, -1, "a folder: " + failed.message());
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> pictures_in(const std::string& folder) {
  return names_in(folder, [](const fs::directory_entry& entry) {
    return entry.is_regular_file() && is_picture_name(entry.path().string());
  });
}

/// The folders that hold pictures themselves.
std::vector<std::string> classes_in(const std::string& folder) {
  if (!fs::is_directory(folder)) return {};
  return names_in(folder, [](const fs::directory_entry& entry) {
    return entry.is_directory() && !pictures_in(entry.path().string()).empty();
  });
}

/// Reads the pictures of all classes, one split after another.
class PictureFolder {
 public:
  PictureFolder(const ImageReading& reading, const VisitExample& visit)
      : reading_(reading), visit_(visit) {}

  ImageShape read() {
    const std::string train = reading_.path + "/train";
    const bool has_splits = !classes_in(train).empty();
    classes_ = classes_in(has_splits ? train : reading_.path);
    if (classes_.size() < 2 || classes_.size() > kMostFolders)
      throw DataError(reading_.path, -1,
                      "pictures in folders for 2 to 1000 classes, got " +
                          std::to_string(classes_.size()));
    if (!has_splits) {
      SplitDealer dealer(reading_.valid, reading_.test);
      read_split(reading_.path, [&] { return dealer.next(); });
    } else {
      read_splits();
    }
    return {side_ / reading_.patch,
            reading_.patch * reading_.patch * (reading_.colour ? 3 : 1), classes_};
  }

 private:
  void read_splits() {
    std::string valid;
    for (const char* name : {"valid", "val", "dev"})
      if (valid.empty() && fs::is_directory(reading_.path + "/" + name))
        valid = reading_.path + "/" + name;
    SplitDealer dealer(valid.empty() ? reading_.valid : 0, 0);
    read_split(reading_.path + "/train", [&] { return dealer.next(); });
    if (!valid.empty()) read_split(valid, [] { return "valid"; });
    const std::string test = reading_.path + "/test";
    if (fs::is_directory(test)) read_split(test, [] { return "test"; });
  }

  void read_split(const std::string& folder,
                  const std::function<std::string()>& split) {
    for (const std::string& name : classes_in(folder)) {
      const auto found = std::ranges::find(classes_, name);
      if (found == classes_.end())
        throw DataError(folder + "/" + name, -1, "a class that train has too");
      for (const std::string& file : pictures_in(folder + "/" + name))
        read_one(folder + "/" + name + "/" + file,
                 static_cast<int>(found - classes_.begin()), split());
    }
  }

  void read_one(const std::string& file, int label, const std::string& split) {
    ColourImage picture = read_picture(file);
    if (reading_.size > 0) picture = squared(picture, reading_.size);
    if (side_ == 0) {
      side_ = picture.height;
      if (picture.height == picture.width) check_patch("images", reading_.patch, side_);
    }
    if (picture.height != side_ || picture.width != side_)
      throw DataError(file, -1,
                      "square pictures of one size (size=N, --size N makes them so), " +
                          std::to_string(side_) + " x " + std::to_string(side_) +
                          ", got " + std::to_string(picture.width) + " x " +
                          std::to_string(picture.height));
    visit_(split,
           {label,
            image_patches(planes_of(picture, reading_.colour), side_, reading_.patch),
            {}},
           -1);
  }

  const ImageReading& reading_;
  const VisitExample& visit_;
  std::vector<std::string> classes_;
  int64_t side_ = 0;
};

}  // namespace

bool is_picture_folder(const std::string& path) {
  return !classes_in(path).empty() || !classes_in(path + "/train").empty();
}

ImageShape read_picture_folder(const ImageReading& reading, const VisitExample& visit) {
  return PictureFolder(reading, visit).read();
}

std::vector<int32_t> picture_numbers(const std::string& name, Bytes bytes, int64_t side,
                                     int64_t patch, bool colour) {
  ColourImage picture = parse_picture(name, bytes);
  if (picture.height != side || picture.width != side) picture = squared(picture, side);
  return image_patches(planes_of(picture, colour), side, patch);
}

}  // namespace lagwise::data
