#include "lagwise/data/formats/mapped_places.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>

namespace lagwise::data {
namespace {

/// One file. `begin` is null while nobody uses the place: it is set last and taken away
/// first, so that a handler of signals, which cannot wait for the mutex, reads the others
/// only while they stand.
struct Place {
  std::atomic<const uint8_t*> begin{nullptr};
  const uint8_t* end = nullptr;
  std::array<char, 256> name{};
  dev_t device = 0;
  ino_t number = 0;
  off_t size = 0;
  timespec written{};
};

std::array<Place, 64> places;
std::mutex places_mutex;

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
  const std::lock_guard lock(places_mutex);
  for (Place& place : places) {
    if (place.begin.load() != nullptr) continue;
    place.end = bytes.data() + bytes.size();
    place.name.fill('\0');
    std::copy_n(file.data(), std::min(file.size(), place.name.size() - 1),
                place.name.data());
    place.device = status.st_dev, place.number = status.st_ino;
    place.size = status.st_size, place.written = status.st_mtim;
    place.begin.store(bytes.data());
    return;
  }
}

void MappedPlaces::remove(Bytes bytes) {
  const std::lock_guard lock(places_mutex);
  for (Place& place : places)
    if (place.begin.load() == bytes.data()) return place.begin.store(nullptr);
}

const char* MappedPlaces::name_at(const void* address) {
  const auto* const at = static_cast<const uint8_t*>(address);
  for (const Place& place : places) {
    const uint8_t* const begin = place.begin.load();
    if (begin != nullptr && at >= begin && at < place.end) return place.name.data();
  }
  return nullptr;
}

std::vector<std::string> MappedPlaces::changed() {
  const std::lock_guard lock(places_mutex);
  std::vector<std::string> names;
  for (const Place& place : places)
    if (place.begin.load() != nullptr && is_changed(place))
      names.emplace_back(place.name.data());
  return names;
}

}  // namespace lagwise::data
