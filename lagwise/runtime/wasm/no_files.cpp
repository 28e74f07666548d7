// data/formats/mapped_file.h where there are no files.

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/mapped_file.h"

namespace lagwise::data {

MappedFile::MappedFile(const std::string& file) {
  throw DataError(file, -1, "memory: a page has no files");
}

MappedFile::~MappedFile() = default;
MappedFile::MappedFile(MappedFile&& other) noexcept = default;
MappedFile& MappedFile::operator=(MappedFile&& other) noexcept = default;

}  // namespace lagwise::data
