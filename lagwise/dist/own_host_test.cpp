#include "lagwise/dist/own_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/dist/own_address.h"

namespace lagwise::dist {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

OwnHost beta(const std::vector<std::string>& addresses) {
  return {"beta",
          addresses,
          {{"eth0", "10.0.0.5"}, {"eth0", "fe80::5"}, {"ib0", "10.1.0.5"}},
          ""};
}

TEST(Reachable, ByANameThatLeadsToAnAddressOfANetwork) {
  const Reachable found = reachable(beta({"10.0.0.5"}));
  EXPECT_TRUE(found.yes);
  EXPECT_THAT(found.why, AllOf(HasSubstr("beta"), HasSubstr("10.0.0.5")));
  EXPECT_TRUE(reachable(beta({"127.0.1.1", "10.0.0.5"})).yes);
}

TEST(Reachable, NotByANameThatDebianMapsToLoopback) {
  const Reachable found = reachable(beta({"127.0.1.1"}));
  EXPECT_FALSE(found.yes);
  EXPECT_THAT(found.why,
              AllOf(HasSubstr("beta, leads to 127.0.1.1"), HasSubstr("write 10.0.0.5"),
                    HasSubstr("GLOO_SOCKET_IFNAME=eth0")));
  EXPECT_FALSE(reachable(beta({"127.0.0.1", "::1"})).yes);
  EXPECT_THAT(reachable(beta({})).why, HasSubstr("leads to no address"));
}

TEST(Reachable, ByTheInterfaceThatIsNamed) {
  OwnHost host = beta({"127.0.1.1"});
  host.chosen = "ib0";
  EXPECT_TRUE(reachable(host).yes);
  EXPECT_THAT(reachable(host).why, HasSubstr("ib0, 10.1.0.5"));
  host.chosen = "eth7";
  EXPECT_FALSE(reachable(host).yes);
  EXPECT_THAT(reachable(host).why, HasSubstr("(eth0, ib0), got 'eth7'"));
}

TEST(Reachable, NotWithoutANetwork) {
  OwnHost host = beta({"127.0.1.1"});
  host.interfaces.clear();
  EXPECT_FALSE(reachable(host).yes);
  EXPECT_THAT(reachable(host).why, HasSubstr("no interface but loopback"));
}

TEST(OwnHost, IsThisOne) {
  const OwnHost host = own_host();
  EXPECT_EQ(host.name, host_name());
  EXPECT_NE(host.name, "");
  for (const auto& [name, address] : host.interfaces) {
    EXPECT_NE(name, "lo");
    EXPECT_FALSE(is_loopback(address)) << address;
  }
}

}  // namespace
}  // namespace lagwise::dist
