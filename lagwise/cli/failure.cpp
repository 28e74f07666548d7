#include "lagwise/cli/failure.h"

#include <c10/util/Exception.h>
#include <cxxabi.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>
#include <ostream>
#include <string>
#include <string_view>
#include <typeinfo>

#include "lagwise/cli/program.h"
#include "lagwise/core/errors.h"
#include "lagwise/dist/lost_peer.h"

namespace lagwise::cli {
namespace {

std::string readable_type(const std::exception& error) {
  int status = 0;
  const char* mangled = typeid(error).name();
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(mangled, nullptr, nullptr, &status), std::free);
  return status == 0 ? name.get() : mangled;
}

// Runs of blanks and line breaks become one blank, and what else steers a terminal a
// question mark: a message may quote a file.
std::string one_line(const std::string& text) {
  std::string line;
  for (char c : text) {
    const bool blank = c == ' ' || c == '\n' || c == '\r' || c == '\t';
    const bool steers = static_cast<uint8_t>(c) < 0x20 || c == 0x7F;
    if (!blank)
      line += steers ? '?' : c;
    else if (!line.empty() && line.back() != ' ')
      line += ' ';
  }
  if (line.ends_with(' ')) line.pop_back();
  return line;
}

// torch has no exception of its own for it.
bool is_out_of_memory(const c10::Error& error) {
  return std::string_view(error.what_without_backtrace()).find("DefaultCPUAllocator") !=
         std::string_view::npos;
}

std::string message(const std::exception& error) {
  // torch's what() goes on with a backtrace.
  if (const auto* torch = dynamic_cast<const c10::Error*>(&error))
    return is_out_of_memory(*torch) ? "out of memory"
                                    : one_line(torch->what_without_backtrace());
  if (dynamic_cast<const std::bad_alloc*>(&error)) return "out of memory";
  // libstdc++ says "filesystem error: cannot create directories: .. [x]".
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&error))
    return one_line("cannot use " + file->path1().string() + ": " +
                    file->code().message());
  return one_line(error.what());
}

int exit_code(const std::exception& error) {
  if (dynamic_cast<const CLI::Error*>(&error)) return kUsage;
  if (dynamic_cast<const std::invalid_argument*>(&error)) return kUsage;
  if (dynamic_cast<const DataError*>(&error)) return kData;
  if (dynamic_cast<const Diverged*>(&error)) return kDiverged;
  if (dynamic_cast<const Interrupted*>(&error)) return kInterrupted;
  if (dynamic_cast<const dist::LostPeer*>(&error)) return kPeerLost;
  return kOther;
}

void write_trace(const std::exception& error, std::ostream& out) {
  out << "  " << readable_type(error) << ": " << message(error) << "\n";
  if (const auto* torch = dynamic_cast<const c10::Error*>(&error))
    out << torch->backtrace() << "\n";
  try {
    std::rethrow_if_nested(error);
  } catch (const std::exception& cause) {
    out << "  caused by\n";
    write_trace(cause, out);
  } catch (...) {
    out << "  caused by something that is no std::exception\n";
  }
}

}  // namespace

int report_failure(std::exception_ptr failure, bool trace, std::ostream& out) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    out << "lagwise: " << message(error) << '\n' << std::flush;
    if (trace) write_trace(error, out);
    return exit_code(error);
  } catch (...) {
    out << "lagwise: failed with something that is no std::exception\n" << std::flush;
    return kOther;
  }
}

}  // namespace lagwise::cli
