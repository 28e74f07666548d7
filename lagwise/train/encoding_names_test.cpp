// No recipe and no document calls something LRPE that is RoPE. What counts is what an
// encoding hands over, not what it is called.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "lagwise/core/grid.h"
#include "lagwise/encodings/encoding.h"
#include "lagwise/train/recipe.h"

namespace lagwise {
namespace {

namespace fs = std::filesystem;

const fs::path kSource = LAGWISE_SOURCE_DIR;

/// q'_i . k'_j of rows in double, any decay left aside. Whatever is learned is moved
/// from where it starts: learned angles are those of RoPE before the first step only.
at::Tensor products(const std::string& text) {
  const auto encoding = make_encoding(text, {.heads = 2, .dim = 16, .seed = 3});
  Layer layer{0, 1, encoding->layer(0, 1)};
  for (auto& [name, x] : layer.own) x.mul_(1.25).add_(0.125);
  at::manual_seed(1);
  const at::Tensor q = at::randn({1, 2, 40, 16}, at::kDouble);
  const at::Tensor k = at::randn({1, 2, 40, 16}, at::kDouble);
  const Encoded e = encode_once(*encoding, q, k, {.horizon = 64}, {}, &layer);
  return at::matmul(e.q, e.k.transpose(2, 3));
}

bool is_rope(const std::string& text) {
  const at::Tensor got = products(text);
  for (const char* rope : {"rope:layout=interleaved", "rope:layout=half"})
    if (at::allclose(got, products(rope), 1e-6, 1e-6)) return true;
  return false;
}

std::vector<fs::path> files_below(const char* folder, const char* extension) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(kSource / folder))
    if (entry.path().extension() == extension) found.push_back(entry.path());
  return found;
}

TEST(EncodingNames, KnowRopeByWhatItDoes) {
  for (const char* text :
       {"lrpe:p=identity,angles=fixed", "lrpe:p=odd_even,angles=fixed",
        "lrpe:lambda=rotation,p=identity,angles=fixed,decay=alibi"})
    EXPECT_TRUE(is_rope(text)) << text;
  for (const char* text :
       {"lrpe", "lrpe:decay=alibi", "lrpe:p=identity", "lrpe:angles=fixed",
        "lrpe:lambda=permutation", "lrpe:lambda=unitary,p=identity,angles=fixed"})
    EXPECT_FALSE(is_rope(text)) << text;
}

TEST(EncodingNames, OfRecipesCallNoRopeLrpe) {
  for (const fs::path& file : files_below("recipes", ".toml")) {
    const ModelConfig model = read_recipe(file.string()).model;
    for (const std::string& text : {model.encoding, model.cross_encoding})
      if (text.starts_with("lrpe")) {
        EXPECT_FALSE(is_rope(text)) << file << ": " << text;
      }
  }
}

TEST(EncodingNames, OfDocumentsCallNoRopeLrpe) {
  std::vector<fs::path> files = files_below("docs", ".md");
  files.push_back(kSource / "README.md");
  // A name with options: values may be lists in braces, as `lagwise compare` takes
  // them.
  const std::regex pattern(
      "\\blrpe:[a-z_]+=(\\{[^}]*\\}|[a-z0-9_.]+)(,[a-z_]+=(\\{[^}]*\\}|[a-z0-9_.]+))*");
  for (const fs::path& file : files) {
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    const std::string all = text.str();
    for (std::sregex_iterator at(all.begin(), all.end(), pattern), end; at != end; ++at)
      for (const std::string& one : expand_grid("document", at->str()))
        EXPECT_FALSE(is_rope(one)) << file << ": " << one;
  }
  EXPECT_FALSE(is_rope("lrpe"));  // what they mean by the bare word
}

}  // namespace
}  // namespace lagwise
