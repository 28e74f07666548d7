#pragma once

namespace lagwise::cli {

/// While one of these lives, SIGINT and SIGTERM do not end the process: check() then
/// throws Interrupted, so that whoever works can tidy up. A second signal ends it as
/// usual. What handled the signals before comes back afterwards.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;

  static bool asked();                  ///< whether a signal came
  static void check(const char* said);  ///< throws Interrupted(said) if one did
};

}  // namespace lagwise::cli
