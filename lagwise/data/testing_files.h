#pragma once

// Support for tests; never part of the library.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/bytes.h"

namespace lagwise::testing {

/// A folder of the test's own, gone afterwards.
class TempFolder {
 public:
  TempFolder() {
    std::string name = ::testing::TempDir() + "/lagwise_XXXXXX";
    if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const {
    return (path_ / name).string();
  }
  auto files() const {
    return std::distance(std::filesystem::directory_iterator(path_),
                         std::filesystem::directory_iterator());
  }

 private:
  std::filesystem::path path_;
};

inline void put(const std::string& file, std::string_view contents) {
  std::filesystem::create_directories(std::filesystem::path(file).parent_path());
  std::ofstream(file, std::ios::binary) << contents;
}

inline std::string contents(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The message of the DataError that `act` throws.
template <class Act>
std::string data_error(const Act& act) {
  try {
    act();
  } catch (const DataError& error) {
    return error.what();
  }
  return "(no error)";
}

/// Where the real data sets are: LAGWISE_DATA, or shared/data beside the repository.
/// Packed ones (NAME.tar.xz) are unpacked into `scratch`. Empty: not to be had.
inline std::string real_data(const std::string& name, const TempFolder& scratch) {
  namespace fs = std::filesystem;
  const char* given = std::getenv("LAGWISE_DATA");
  const fs::path here = fs::absolute(__FILE__).parent_path();
  const fs::path folder = given ? fs::path(given) : here / "../../../shared/data";
  if (fs::exists(folder / name)) return (folder / name).string();
  const fs::path packed = folder / (name + ".tar.xz");
  if (!fs::exists(packed)) return "";
  const std::string command =
      "tar -xJf '" + packed.string() + "' -C '" + scratch.path().string() + "'";
  return std::system(command.c_str()) == 0 ? scratch / name : "";
}

/// The .mid files under a folder, in the order of their names: all of them where
/// LAGWISE_DATA_ALL is set, else one in sixteen, which is seconds instead of minutes.
inline std::vector<std::string> midi_files(const std::string& folder) {
  std::vector<std::string> files, some;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".mid") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  const size_t step = std::getenv("LAGWISE_DATA_ALL") ? 1 : 16;
  for (size_t i = 0; i < files.size(); i += step) some.push_back(files[i]);
  return some;
}

/// Ends the test aloud where a data set is absent.
#define LAGWISE_NEEDS_DATA(path, name)                 \
  if ((path).empty())                                  \
  GTEST_SKIP() << "SKIPPED, not passed: no " << (name) \
               << "; set LAGWISE_DATA to the folder that holds the data sets"

}  // namespace lagwise::testing
