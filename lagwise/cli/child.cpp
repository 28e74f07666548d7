#include "lagwise/cli/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace lagwise::cli {
namespace {

/// In the new process, where nothing may allocate: a pool's thread may hold the lock.
[[noreturn]] void become(char* const* words, int log, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(128 + SIGKILL);  // it died in between
  setpgid(0, 0);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  for (const int one : {SIGINT, SIGTERM}) std::signal(one, SIG_DFL);
  execv("/proc/self/exe", words);
  _exit(127);
}

}  // namespace

Child::Child(const std::vector<std::string>& words, const std::string& log) {
  std::vector<std::string> copies = {"lagwise"};
  copies.insert(copies.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& word : copies) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) throw std::runtime_error(log + ": " + std::strerror(errno));
  const pid_t parent = getpid();
  id_ = fork();
  if (id_ == 0) become(pointers.data(), file, parent);
  const int error = errno;
  close(file);
  if (id_ < 0)
    throw std::runtime_error(std::string("a new process: ") + std::strerror(error));
}

bool Child::ended(int& code) {
  int status = 0;
  const pid_t id = waitpid(id_, &status, WNOHANG);
  if (id == 0 || (id < 0 && errno == EINTR)) return false;
  code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return true;
}

void Child::interrupt() const { kill(id_, SIGINT); }

std::string last_line(const std::string& log, const std::string& mark) {
  std::ifstream stream(log);
  std::string last;
  for (std::string line; std::getline(stream, line);)
    if (!line.empty() && line.starts_with(mark)) last = line.substr(mark.size());
  return last;
}

}  // namespace lagwise::cli
