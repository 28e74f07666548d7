#pragma once

#include <csignal>
#include <vector>

namespace lagwise::cli {

/// While this lives Ctrl-C, SIGTERM and SIGHUP (the terminal was closed) only ask to
/// stop. The second Ctrl-C or SIGTERM ends the process; SIGHUP may come several times
/// for one closed terminal, and stays ignored where it was (nohup). What handled the
/// signals before comes back afterwards.
class StopSignal {
 public:
  /// `reader_gone`: SIGPIPE asks to stop too, where whoever read our output has ended.
  /// It stays harmless then, so that the process can say so and end with its own code.
  explicit StopSignal(bool reader_gone = false);
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  static bool asked();
  static void check(const char* said);  ///< throws Interrupted(said) if asked

 private:
  struct Kept {
    int number;
    struct sigaction before;
  };
  void listen(int number, int flags);

  std::vector<Kept> kept_;
};

}  // namespace lagwise::cli
