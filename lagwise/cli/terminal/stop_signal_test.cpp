#include "lagwise/cli/terminal/stop_signal.h"

#include <gtest/gtest.h>

#include "lagwise/core/errors.h"

namespace lagwise::cli {
namespace {

TEST(StopSignal, TurnsASignalIntoAQuestion) {
  const auto before = std::signal(SIGPIPE, SIG_DFL);
  const auto hang_up = std::signal(SIGHUP, SIG_DFL);  // nohup ignores it
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    const StopSignal listening(true);
    EXPECT_NO_THROW(StopSignal::check("stopped"));
    std::raise(signal);
    EXPECT_TRUE(StopSignal::asked());
    EXPECT_THROW(StopSignal::check("stopped"), Interrupted);
  }
  std::signal(SIGHUP, hang_up);
  EXPECT_NE(std::signal(SIGPIPE, before), SIG_DFL);  // the pipe is still broken
}

TEST(StopSignal, SurvivesAsManyHangUpsAsThereAre) {
  const StopSignal listening(true);
  for (int i = 0; i < 3; ++i) std::raise(SIGHUP), std::raise(SIGPIPE);
  EXPECT_TRUE(StopSignal::asked());
  std::signal(SIGPIPE, SIG_DFL);
}

TEST(StopSignal, LeavesAHangUpIgnoredThatWas) {
  const auto before = std::signal(SIGHUP, SIG_IGN);
  {
    const StopSignal listening;
    std::raise(SIGHUP);
    EXPECT_FALSE(StopSignal::asked());
  }
  EXPECT_EQ(std::signal(SIGHUP, before), SIG_IGN);
}

TEST(StopSignal, GivesTheSignalsBack) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    struct sigaction before = {}, after = {};
    sigaction(signal, nullptr, &before);
    { const StopSignal listening(true); }
    sigaction(signal, nullptr, &after);
    EXPECT_EQ(before.sa_handler, after.sa_handler);
  }
}

}  // namespace
}  // namespace lagwise::cli
