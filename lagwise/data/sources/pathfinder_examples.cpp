#include "lagwise/data/sources/pathfinder_examples.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <sstream>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/grey_png.h"
#include "lagwise/data/formats/mapped_file.h"
#include "lagwise/data/sources/image_examples.h"

namespace lagwise::data {
namespace {

namespace fs = std::filesystem;

/// The number of "17.npy"; -1 for another kind of name.
int64_t number_of(const fs::path& file) {
  const std::string stem = file.stem().string();
  int64_t number = -1;
  const auto [end, error] =
      std::from_chars(stem.data(), stem.data() + stem.size(), number);
  return error == std::errc() && end == stem.data() + stem.size() ? number : -1;
}

std::vector<fs::path> metadata_files(const std::string& folder) {
  std::vector<fs::path> files;
  std::error_code failed;
  for (fs::directory_iterator at(folder + "/metadata", failed), end;
       !failed && at != end; at.increment(failed))
    if (at->path().extension() == ".npy" && number_of(at->path()) >= 0)
      files.push_back(at->path());
  if (files.empty()) throw DataError(folder, -1, "metadata/<number>.npy in the folder");
  std::ranges::sort(files, {}, number_of);
  return files;
}

std::vector<PathfinderLine> all_lines(const std::string& folder) {
  std::vector<PathfinderLine> lines;
  for (const fs::path& file : metadata_files(folder)) {
    const MappedFile mapped(file.string());
    for (PathfinderLine& line :
         parse_pathfinder_metadata(file.string(), mapped.bytes()))
      lines.push_back(std::move(line));
  }
  if (lines.empty()) throw DataError(folder + "/metadata", -1, "images, got none");
  return lines;
}

/// A name that stays within the folder.
bool is_inside(const std::string& path) {
  const fs::path name(path);
  return name.is_relative() &&
         std::none_of(name.begin(), name.end(),
                      [](const fs::path& part) { return part == ".."; });
}

bool parse_line(const std::string& text, PathfinderLine& line) {
  std::istringstream in(text);
  std::string folder, file, number, label;
  if (!(in >> folder >> file >> number >> label) || (label != "0" && label != "1"))
    return false;
  line = {folder + "/" + file, label == "1"};
  return is_inside(line.image);
}

}  // namespace

void make_pathfinder_examples(const PathfinderMaking& making,
                              const VisitExample& visit) {
  check_patch("pathfinder", making.patch, making.rules.side);
  const Pathfinder pathfinder(making.seed, making.rules);
  const auto all = static_cast<double>(making.train + making.valid + making.test);
  int64_t made = 0;
  const auto make = [&](const std::string& split, int64_t images) {
    for (int64_t i = 0; i < images; ++i) {
      const PathfinderImage image = pathfinder.image(made++);
      visit(split,
            {image.label,
             image_patches(image.pixels, making.rules.side, making.patch),
             {}},
            static_cast<double>(made) / all);
    }
  };
  make("test", making.test);
  make("valid", making.valid);
  make("train", making.train);
}

std::vector<PathfinderLine> parse_pathfinder_metadata(const std::string& name,
                                                      Bytes text) {
  std::vector<PathfinderLine> lines;
  const std::string_view all = text_of(text);
  for (size_t at = 0; at < all.size();) {
    const size_t end = std::min(all.find('\n', at), all.size());
    PathfinderLine line;
    if (end - at > 4096 || !parse_line(std::string(all.substr(at, end - at)), line))
      throw DataError(name, static_cast<int64_t>(at),
                      "a line 'folder file number label' with a label of 0 or 1");
    lines.push_back(std::move(line));
    at = end + 1;
  }
  return lines;
}

int64_t read_pathfinder_examples(const std::string& folder, int64_t patch,
                                 const VisitExample& visit) {
  const std::vector<PathfinderLine> lines = all_lines(folder);
  const size_t all = lines.size();
  int64_t side = 0;
  for (size_t i = 0; i < all; ++i) {
    const std::string file = folder + "/" + lines[i].image;
    const GreyImage image = read_grey_png(file);
    if (side == 0) check_patch("pathfinder", patch, side = image.width);
    if (image.width != side || image.height != side)
      throw DataError(file, -1,
                      "an image of " + std::to_string(side) + " x " +
                          std::to_string(side) + " pixels, got " +
                          std::to_string(image.width) + " x " +
                          std::to_string(image.height));
    const char* split =
        10 * i < 8 * all ? "train" : (10 * i < 9 * all ? "valid" : "test");
    visit(split, {lines[i].label, image_patches(image.pixels, side, patch), {}},
          static_cast<double>(i + 1) / static_cast<double>(all));
  }
  return side;
}

}  // namespace lagwise::data
