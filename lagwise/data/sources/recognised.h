#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lagwise::data {

/// What a file or a folder turned out to be.
struct Recognised {
  std::string path;  ///< what to read: that which was asked for, or the one table in it
  /// As `lagwise data` calls it: midi, language, text, pairs, images, listops, retrieval,
  /// pathfinder, harmonise; or set, which is prepared already. Empty: none of these.
  std::string kind;
  std::string form;  ///< of images cifar10, mnist or folders; of a set its scheme
  std::vector<std::string> seen;  ///< what lies there, for people, a line each
  std::string why = {};           ///< why it is none; a clause after "expected"
  int64_t length = 0;  ///< of pairs, and sets of ListOps: the data.length that takes
                       ///<   all of them
};

/// Looks at names, then into what they promise: tables, texts and chorales are read whole,
/// of music and pictures the files are counted. Files called README or LICENSE, and .md,
/// do not make a folder mixed. DataError for a path that is not there, and for a table of
/// a known kind with something wrong in it, with its row.
Recognised recognise(const std::string& path);

}  // namespace lagwise::data
