#include "lagwise/data/sources/picture_folder.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/path_kind.h"
#include "lagwise/data/formats/picture.h"
#include "lagwise/data/sets/left_out.h"
#include "lagwise/data/sets/split_dealer.h"
#include "lagwise/data/sets/split_file.h"

namespace lagwise::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFolders = 1000;  // classes

/// The names in a folder whose paths `wanted` wants, in order. DataError where it cannot
/// be read.
std::vector<std::string> names_in(
    const std::string& folder, const std::function<bool(const std::string&)>& wanted) {
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end;
       at.increment(failed))
    if (wanted(at->path().string())) names.push_back(at->path().filename().string());
  if (failed) throw DataError(folder, -1, "a folder: " + failed.message());
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> pictures_in(const std::string& folder) {
  return names_in(folder, [](const std::string& path) {
    return is_picture_name(path) && !is_folder(path);
  });
}

/// The folders that hold pictures themselves.
std::vector<std::string> classes_in(const std::string& folder) {
  if (!is_folder(folder)) return {};
  return names_in(folder, [](const std::string& path) {
    return is_folder(path) && !pictures_in(path).empty();
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
            reading_.patch * reading_.patch * (reading_.colour ? 3 : 1), classes_,
            left_out()};
  }

 private:
  void read_splits() {
    const auto folder_of = [&](const char* split) {
      return find_split_file(reading_.path, split, {""});
    };
    const std::string train = folder_of("train"), valid = folder_of("valid"),
                      test = folder_of("test");
    for (const std::string& name : names_in(reading_.path, is_folder)) {
      const std::string folder = reading_.path + "/" + name;
      if (folder != train && folder != valid && folder != test &&
          !classes_in(folder).empty())
        throw DataError(folder, -1,
                        "a split by the name of train, valid (or val, validation, "
                        "dev) or test, got pictures by class in '" +
                            name + "'");
    }
    SplitDealer dealer(valid.empty() ? reading_.valid : 0, 0);
    read_split(train, [&] { return dealer.next(); });
    if (!valid.empty()) read_split(valid, [] { return "valid"; });
    if (!test.empty()) read_split(test, [] { return "test"; });
  }

  void read_split(const std::string& folder,
                  const std::function<std::string()>& split) {
    for (const std::string& name : names_in(folder, is_folder))
      read_class(folder + "/" + name, name, split);
  }

  void read_class(const std::string& folder, const std::string& name,
                  const std::function<std::string()>& split) {
    const std::vector<std::string> files = pictures_in(folder);
    if (files.empty()) return refuse_other_pictures(folder);
    const auto found = std::ranges::find(classes_, name);
    if (found == classes_.end())
      throw DataError(folder, -1, "a class that train has too");
    for (const std::string& file : files)
      read_one(folder + "/" + file, static_cast<int>(found - classes_.begin()),
               split());
    read_.insert(folder);
  }

  /// Without them a class would be missing.
  static void refuse_other_pictures(const std::string& folder) {
    const std::vector<std::string> others = names_in(folder, is_other_picture_name);
    if (!others.empty())
      throw DataError(folder, -1,
                      "pictures as PNG or JPEG, got " + std::to_string(others.size()) +
                          " in other formats, such as " + others.front());
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

  /// Files below the folder that are no pictures, but for hidden ones, and pictures that
  /// lie elsewhere than in the folder of a class.
  std::vector<std::string> left_out() const {
    std::vector<std::string> others, elsewhere;
    std::error_code failed;
    for (fs::recursive_directory_iterator at(reading_.path, failed), end;
         !failed && at != end; at.increment(failed)) {
      const fs::path path = at->path();
      if (is_folder(path.string()) || path.filename().string().starts_with('.'))
        continue;
      const std::string name = path.lexically_relative(reading_.path).string();
      if (!is_picture_name(name))
        others.push_back(name);
      else if (!read_.contains(path.parent_path()))
        elsewhere.push_back(name);
    }
    if (failed)
      throw DataError(reading_.path, -1, "a readable folder: " + failed.message());
    return left_out_lines(
        {{"files that are neither PNG nor JPEG", others},
         {"pictures that do not lie in the folder of a class itself", elsewhere}});
  }

  const ImageReading& reading_;
  const VisitExample& visit_;
  std::vector<std::string> classes_;
  std::set<fs::path> read_;  // folders of classes, in all splits
  int64_t side_ = 0;
};

}  // namespace

size_t picture_classes(const std::string& path) {
  const size_t trained = classes_in(path + "/train").size();
  return trained > 0 ? trained : classes_in(path).size();
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
