#include "lagwise/cli/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace lagwise::cli {
namespace {

/// In the new process, where nothing may allocate: a pool's thread may hold the lock.
[[noreturn]] void become(char* const* words, char* const* environment, int log,
                         pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(128 + SIGKILL);  // it died in between
  setpgid(0, 0);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  if (log >= 0) {
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
  }
  for (const int one : {SIGINT, SIGTERM}) std::signal(one, SIG_DFL);
  execve("/proc/self/exe", words, environment);
  _exit(127);
}

/// Pointers to the texts as execve wants them.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Ours with `variables` over it.
std::vector<std::string> environment_with(const Variables& variables) {
  const auto name = [](const std::string& text) {
    return text.substr(0, text.find('='));
  };
  std::vector<std::string> all = variables;
  for (char** one = environ; *one != nullptr; ++one)
    if (std::none_of(variables.begin(), variables.end(),
                     [&](const std::string& ours) { return name(ours) == name(*one); }))
      all.emplace_back(*one);
  return all;
}

int open_log(const std::string& log) {
  if (log.empty()) return -1;
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) throw std::runtime_error(log + ": " + std::strerror(errno));
  return file;
}

}  // namespace

Child::Child(const std::vector<std::string>& words, const std::string& log,
             const Variables& variables) {
  std::vector<std::string> copies = {"lagwise"};
  copies.insert(copies.end(), words.begin(), words.end());
  std::vector<std::string> environment = environment_with(variables);
  const std::vector<char*> arguments = pointers_to(copies),
                           settings = pointers_to(environment);
  const int file = open_log(log);
  const pid_t parent = getpid();
  id_ = fork();
  if (id_ == 0) become(arguments.data(), settings.data(), file, parent);
  const int error = errno;
  if (file >= 0) close(file);
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

/// /proc/ID/stat: "ID (name) state ...", where a name may hold anything.
bool Child::stopped() const {
  std::ifstream file("/proc/" + std::to_string(id_) + "/stat");
  std::string text;
  std::getline(file, text);
  const size_t end = text.rfind(") ");
  return end != text.npos && text.substr(end + 2, 1) == "T";
}

void Child::interrupt() const { send(SIGINT); }

void Child::send(int signal) const { kill(id_, signal); }

std::string last_line(const std::string& log, const std::string& mark) {
  std::ifstream stream(log);
  std::string last;
  for (std::string line; std::getline(stream, line);)
    if (!line.empty() && line.starts_with(mark)) last = line.substr(mark.size());
  return last;
}

}  // namespace lagwise::cli
