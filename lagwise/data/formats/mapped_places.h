#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lagwise/data/formats/bytes.h"

struct stat;

namespace lagwise::data {

/// Which files stand where in memory (data/formats/mapped_file.h): for whoever learns of
/// trouble at an address, and for whoever wants to know whether a file is still as it
/// was. Of many files at a time only the first 64 are known.
class MappedPlaces {
 public:
  static void add(const std::string& file, Bytes bytes, const struct stat& status);
  static void remove(Bytes bytes);

  /// The name of the file at an address, cut to 255 bytes; nullptr: none that is known.
  /// A handler of signals may call it: it takes no lock and no memory.
  static const char* name_at(const void* address);

  /// Files that were written to in place since they were mapped: what was read of them
  /// later may be something else. One whose name now means another file is as it was.
  static std::vector<std::string> changed();
};

}  // namespace lagwise::data
