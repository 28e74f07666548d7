#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace lagwise::cli {

/// Variables that go over ours in a child's environment: "RANK=1".
using Variables = std::vector<std::string>;

/// Another process of this program, whose words go to a log file. It dies with us,
/// however we end, and gets no Ctrl-C from the terminal: only what interrupt() sends.
class Child {
 public:
  /// `words` after the program's name. Without a `log` its words go where ours go.
  /// std::runtime_error if it cannot be started.
  Child(const std::vector<std::string>& words, const std::string& log,
        const Variables& variables = {});

  pid_t id() const { return id_; }

  /// Whether it has ended; `code` is then its exit code, or 128 + the signal.
  bool ended(int& code);

  bool stopped() const;    ///< by SIGSTOP, and not yet gone on
  void interrupt() const;  ///< asks it to save and stop
  void send(int signal) const;

 private:
  pid_t id_ = -1;
};

/// The last line of a log that is not empty and begins with `mark`, without the mark:
/// how far the program is; with "lagwise: ", what it complained of last.
std::string last_line(const std::string& log, const std::string& mark = "");

}  // namespace lagwise::cli
