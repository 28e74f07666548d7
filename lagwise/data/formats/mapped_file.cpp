#include "lagwise/data/formats/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/mapped_places.h"

namespace lagwise::data {
namespace {

[[noreturn]] void refuse(const std::string& file) {
  throw DataError(file, -1, std::string("a readable file: ") + std::strerror(errno));
}

struct Descriptor {
  int number;
  ~Descriptor() { close(number); }
};

}  // namespace

MappedFile::MappedFile(const std::string& file) : name_(file) {
  // Without O_NONBLOCK, opening a pipe nobody writes to would wait for ever.
  const int opened = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (opened < 0) refuse(file);
  const Descriptor descriptor{opened};
  struct stat status;
  if (fstat(opened, &status) != 0) refuse(file);
  if (!S_ISREG(status.st_mode))
    throw DataError(file, -1,
                    std::string("a readable file, got ") +
                        (S_ISDIR(status.st_mode) ? "a folder" : "a pipe or device"));
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return;  // nothing to map
  void* const memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, opened, 0);
  if (memory == MAP_FAILED) refuse(file);
  bytes_ = {static_cast<const uint8_t*>(memory), size};
  MappedPlaces::add(file, bytes_, status);
}

void MappedFile::will_read(size_t first, size_t count) const {
  if (first >= bytes_.size()) return;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGE_SIZE));
  const size_t begin = first / page * page;
  const size_t end = std::min(bytes_.size(), first + count);
  madvise(const_cast<uint8_t*>(bytes_.data()) + begin, end - begin, MADV_WILLNEED);
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  MappedPlaces::remove(bytes_);
  munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : name_(std::move(other.name_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace lagwise::data
