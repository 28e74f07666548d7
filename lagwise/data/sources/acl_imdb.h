#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lagwise::data {

/// A film review in the folders of aclImdb: SPLIT/pos|neg/<id>_<rating>.txt.
struct Review {
  std::string file;
  int64_t id = 0;
  int rating = 0;  ///< 1 to 10
  int label = 0;   ///< 0: neg, 1: pos
};

/// The reviews of a split ("train", "test"), negative ones first, then by id: the same
/// order on every machine. DataError for a folder that is missing or empty, or a .txt
/// file with another kind of name. (Maas et al., ACL 2011.)
std::vector<Review> list_acl_imdb(const std::string& folder, const std::string& split);

}  // namespace lagwise::data
