#include "lagwise/data/formats/mapped_places.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>

namespace lagwise::data {
namespace {

/// One file. `begin` is null while nobody uses the place and kTaken while someone fills
/// it in; only between setting it and taking it away may the others be read.
struct Place {
  std::atomic<const uint8_t*> begin{nullptr};
  const uint8_t* end = nullptr;
  std::array<char, 256> name{};
  dev_t device = 0;
  ino_t number = 0;
  off_t size = 0;
  timespec written{};
};

const uint8_t kTakenByte = 0;
const uint8_t* const kTaken = &kTakenByte;

std::array<Place, 64> places;

bool is_changed(const Place& place) {
  struct stat now;
  return stat(place.name.data(), &now) == 0 && now.st_dev == place.device &&
         now.st_ino == place.number &&
         (now.st_size != place.size || now.st_mtim.tv_sec != place.written.tv_sec ||
          now.st_mtim.tv_nsec != place.written.tv_nsec);
}

}  // namespace

void MappedPlaces::add(const std::string& file, Bytes bytes,
                       const struct stat& status) {
  for (Place& place : places) {
    const uint8_t* nobody = nullptr;
    if (!place.begin.compare_exchange_strong(nobody, kTaken)) continue;
    place.end = bytes.data() + bytes.size();
    place.name.fill('\0');
    std::copy_n(file.data(), std::min(file.size(), place.name.size() - 1),
                place.name.data());
    place.device = status.st_dev, place.number = status.st_ino;
    place.size = status.st_size, place.written = status.st_mtim;
    place.begin.store(bytes.data(), std::memory_order_release);
    return;
  }
}

void MappedPlaces::remove(Bytes bytes) {
  for (Place& place : places) {
    const uint8_t* begin = bytes.data();
    if (place.begin.compare_exchange_strong(begin, nullptr)) return;
  }
}

const char* MappedPlaces::name_at(const void* address) {
  const auto* const at = static_cast<const uint8_t*>(address);
  for (const Place& place : places) {
    const uint8_t* const begin = place.begin.load(std::memory_order_acquire);
    if (begin != nullptr && begin != kTaken && at >= begin && at < place.end)
      return place.name.data();
  }
  return nullptr;
}

std::vector<std::string> MappedPlaces::changed() {
  std::vector<std::string> names;
  for (const Place& place : places) {
    const uint8_t* const begin = place.begin.load(std::memory_order_acquire);
    if (begin != nullptr && begin != kTaken && is_changed(place))
      names.emplace_back(place.name.data());
  }
  return names;
}

}  // namespace lagwise::data
