#pragma once

#include <string>
#include <vector>

#include "lagwise/data/formats/bytes.h"

namespace lagwise::data {

/// Whether the bytes begin like a gzip file.
bool is_gzip(Bytes bytes);

/// The contents of a gzip file (RFC 1952; several members follow each other). Memory
/// grows with what is really there, and more than `most` bytes are refused: a few
/// bytes may unpack to a thousand times as many. DataError with the packed offset.
std::vector<uint8_t> gunzip(const std::string& file, Bytes packed, size_t most);

}  // namespace lagwise::data
