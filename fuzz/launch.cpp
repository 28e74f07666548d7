#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>

#include "lagwise/data/formats/bytes.h"
#include "lagwise/dist/world.h"

/// Any lines NAME=VALUE are the variables of someone who started this process, or a
/// std::invalid_argument of one line. Who we are then makes sense.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lagwise;
  std::map<std::string, std::string> variables;
  std::string_view rest = data::text_of({data, size});
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const size_t equals = line.find('=');
    if (equals != line.npos && line.find('\0') == line.npos)
      variables[std::string(line.substr(0, equals))] = line.substr(equals + 1);
  }
  try {
    const dist::World world =
        dist::read_world([&](const std::string& name) -> std::optional<std::string> {
          const auto found = variables.find(name);
          if (found == variables.end()) return std::nullopt;
          return found->second;
        });
    if (world.size < 1 || world.rank < 0 || world.rank >= world.size) std::abort();
    if (!world.started_by.empty() && (world.port < 1 || world.port > 65535))
      std::abort();
    if (world.size > 1 && world.address.empty()) std::abort();
  } catch (const std::invalid_argument& error) {
    if (std::string(error.what()).find('\n') != std::string::npos) std::abort();
  }
  return 0;
}
