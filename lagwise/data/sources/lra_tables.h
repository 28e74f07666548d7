#pragma once

#include <functional>
#include <string>

#include "lagwise/data/formats/bytes.h"

namespace lagwise::data {

/// The tables of the Long Range Arena and their relatives, row by row: a file of any
/// length is read in the memory of one row. Returns the number of rows; what does not
/// hold is a DataError at its row.

/// ListOps: header "Source<TAB>Target", CRLF; or, as its first authors wrote it,
/// "label<TAB>expression" without a header. The label is 0 to 9.
int64_t each_listops_row(
    const std::string& file,
    const std::function<void(std::string_view expression, int label)>&);

/// Retrieval (AAN): "label<TAB>id<TAB>id<TAB>text<TAB>text" without a header; a label
/// of 0 or 1, also written 0.0 or 1.0.
int64_t each_retrieval_row(
    const std::string& file,
    const std::function<void(std::string_view first, std::string_view second,
                             int label)>&);

}  // namespace lagwise::data
