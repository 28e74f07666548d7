#pragma once

// Support for the fuzz targets whose readers take a path.

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

/// A folder in memory where there is one, gone when the program ends.
class MemoryFolder {
 public:
  MemoryFolder() {
    const bool memory = std::filesystem::is_directory("/dev/shm");
    std::string name = memory ? "/dev/shm/lagwise_XXXXXX" : "/tmp/lagwise_XXXXXX";
    if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~MemoryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  MemoryFolder(const MemoryFolder&) = delete;
  MemoryFolder& operator=(const MemoryFolder&) = delete;

  const std::string& path() const { return path_; }

  /// Makes or replaces a file; its path.
  std::string put(const std::string& name, std::string_view contents) const {
    const std::string file = path_ + "/" + name;
    std::ofstream(file, std::ios::binary) << contents;
    return file;
  }

 private:
  std::string path_;
};
