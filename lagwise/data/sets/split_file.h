#pragma once

#include <string>
#include <vector>

namespace lagwise::data {

/// The names that files and folders of a split go by: train; valid, val, validation, dev;
/// test.
const std::vector<std::string>& split_names(const std::string& split);

/// The file in a folder that has one of the names of a split with one of these endings
/// ("" finds folders); empty: there is none. DataError where there are two.
std::string find_split_file(const std::string& folder, const std::string& split,
                            const std::vector<std::string>& endings);

}  // namespace lagwise::data
