#include "lagwise/cli/interruption.h"

#include <gtest/gtest.h>

#include <csignal>

#include "lagwise/core/errors.h"

namespace lagwise::cli {
namespace {

TEST(Interruption, TurnsASignalIntoAnException) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const Interruption guard;
    EXPECT_NO_THROW(Interruption::check("stopped"));
    std::raise(signal);
    EXPECT_TRUE(Interruption::asked());
    EXPECT_THROW(Interruption::check("stopped"), Interrupted);
  }
}

TEST(Interruption, GivesTheSignalBack) {
  struct sigaction before {
  }, after{};
  sigaction(SIGINT, nullptr, &before);
  { const Interruption guard; }
  sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

}  // namespace
}  // namespace lagwise::cli
