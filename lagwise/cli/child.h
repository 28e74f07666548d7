#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace lagwise::cli {

/// Another process of this program, whose words go to a log file. It dies with us,
/// however we end, and gets no Ctrl-C from the terminal: only what interrupt() sends.
class Child {
 public:
  /// `words` after the program's name. std::runtime_error if it cannot be started.
  Child(const std::vector<std::string>& words, const std::string& log);

  pid_t id() const { return id_; }

  /// Whether it has ended; `code` is then its exit code, or 128 + the signal.
  bool ended(int& code);

  void interrupt() const;  ///< asks it to save and stop

 private:
  pid_t id_ = -1;
};

/// The last line of a log that is not empty and begins with `mark`, without the mark:
/// how far the program is; with "lagwise: ", what it complained of last.
std::string last_line(const std::string& log, const std::string& mark = "");

}  // namespace lagwise::cli
