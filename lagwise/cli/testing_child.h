#pragma once

// Support for tests; never part of the program.

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace lagwise::testing {

/// The real program in a process of its own, whose output is read line by line.
class Child {
 public:
  /// `most_bytes`: no file of the child grows beyond; 0: any may.
  explicit Child(const std::vector<std::string>& words, rlim_t most_bytes = 0) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    std::vector<char*> arguments = {const_cast<char*>("lagwise")};
    for (const std::string& word : words)
      arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    process_ = fork();
    if (process_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      dup2(ends[1], STDERR_FILENO);
      signal(SIGHUP, SIG_DFL);  // whoever tests with nohup ignores it
      if (most_bytes > 0) {
        const rlimit limit{most_bytes, most_bytes};
        setrlimit(RLIMIT_FSIZE, &limit);
        signal(SIGXFSZ, SIG_IGN);  // so that write fails, as on a full disk
      }
      execv(LAGWISE_PROGRAM, arguments.data());
      _exit(127);
    }
    close(ends[1]);
    from_ = ends[0];
  }
  ~Child() {
    if (process_ > 0) send(SIGKILL), wait();
    close(from_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Reads on until `count` whole lines have come in all; false: the output ended.
  bool read_lines(int count) {
    char part[4096];
    for (;;) {
      int have = 0;
      for (const char c : output_) have += c == '\n';
      if (have >= count) return true;
      const ssize_t got = ::read(from_, part, sizeof(part));
      if (got <= 0) return false;
      output_.append(part, static_cast<size_t>(got));
    }
  }

  /// Whoever read the output is gone.
  void stop_reading() {
    close(from_);
    from_ = -1;
  }

  void send(int which) const { kill(process_, which); }

  /// Its exit code, or minus the signal that ended it.
  int wait() {
    while (read_lines(1 << 30)) {
    }
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  const std::string& output() const { return output_; }

 private:
  pid_t process_ = -1;
  int from_ = -1;
  std::string output_;
};

inline void sleep_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

}  // namespace lagwise::testing
