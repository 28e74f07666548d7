#include "lagwise/dist/own_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace lagwise::dist {
namespace {

TEST(OwnAddress, IsLoopbackTowardsOurselves) {
  EXPECT_EQ(own_address("127.0.0.1", 29500), "127.0.0.1");
  EXPECT_EQ(own_address("no.such.host.invalid", 29500), "127.0.0.1");
}

TEST(CheckReachable, RefusesALoopbackThatAnotherHostWouldNeed) {
  EXPECT_NO_THROW(check_reachable({"127.0.0.1", "127.0.0.1"}, {"a", "a"}));
  EXPECT_NO_THROW(check_reachable({"10.0.0.1", "10.0.0.2"}, {"a", "b"}));
  EXPECT_THROW(check_reachable({"127.0.1.1", "10.0.0.2"}, {"a", "b"}),
               std::invalid_argument);
  EXPECT_THROW(check_reachable({"127.0.0.1", "127.0.0.1"}, {"a", "b"}),
               std::invalid_argument);
  try {
    check_reachable({"127.0.1.1", "10.0.0.2"}, {"a", "b"});
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(),
                ::testing::AllOf(::testing::HasSubstr("rank 0 on a"),
                                 ::testing::HasSubstr("GLOO_SOCKET_IFNAME")));
  }
}

}  // namespace
}  // namespace lagwise::dist
