#include "lagwise/cli/generate/fluidsynth.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <vector>

namespace lagwise::cli {
namespace {

namespace fs = std::filesystem;

/// Runs a program found on the path, without a shell and without a word on the
/// terminal; whether it ended well.
bool run_silently(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_RDWR, 0);
  posix_spawnattr_t attributes;  // Ctrl-C is to end it too, though we block it here
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, arguments[0], &actions, &attributes,
                                  arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return false;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

std::string find_soundfont() {
  if (const char* const given = std::getenv("LAGWISE_SOUNDFONT")) return given;
  for (const char* const folder :
       {"/usr/share/sounds/sf2", "/usr/share/sounds/sf3", "/usr/share/soundfonts"}) {
    std::vector<std::string> found;
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator(folder, failed)) {
      const std::string kind = entry.path().extension().string();
      if (kind == ".sf2" || kind == ".sf3") found.push_back(entry.path().string());
    }
    if (!found.empty()) return *std::ranges::min_element(found);
  }
  return "";
}

bool render_wav(const std::string& midi, const std::string& wav) {
  const std::string soundfont = find_soundfont();
  if (soundfont.empty() || !fs::exists(soundfont)) return false;
  std::error_code ignored;
  fs::remove(wav, ignored);
  const bool played = run_silently({"fluidsynth", "-ni", "-q", "-g", "0.6", "-r",
                                    "44100", "-T", "wav", "-F", wav, soundfont, midi});
  return played && fs::exists(wav);
}

}  // namespace lagwise::cli
