#include "lagwise/data/formats/fnv1a.h"

#include <gtest/gtest.h>

namespace lagwise::data {
namespace {

// The vectors published with the hash (draft-eastlake-fnv, appendix C).
TEST(Fnv1a, GivesThePublishedValues) {
  EXPECT_EQ(hash_text(fnv1a(bytes_of(""))), "cbf29ce484222325");
  EXPECT_EQ(hash_text(fnv1a(bytes_of("a"))), "af63dc4c8601ec8c");
  EXPECT_EQ(hash_text(fnv1a(bytes_of("foobar"))), "85944171f73967e8");
}

TEST(Fnv1a, ResumesFromAHash) {
  EXPECT_EQ(fnv1a(bytes_of("bar"), fnv1a(bytes_of("foo"))), fnv1a(bytes_of("foobar")));
}

}  // namespace
}  // namespace lagwise::data
