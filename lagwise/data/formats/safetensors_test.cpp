#include "lagwise/data/formats/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

std::string file_of(const std::string& header, const std::string& data = "") {
  std::string file;
  for (int i = 0; i < 8; ++i)
    file.push_back(static_cast<char>(header.size() >> 8 * i & 0xff));
  return file + header + data;
}

Safetensors read(const std::string& file) { return {"x.safetensors", bytes_of(file)}; }

std::string complaint(const std::string& file) {
  return data_error([&] { read(file); });
}

std::string entry(const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

TEST(Safetensors, ReadsTensorsInTheOrderOfTheirData) {
  const std::string file =
      file_of("{\"b\":" + entry("U8", "[4]", "[0,4]") +
                  ",\"a\":" + entry("I16", "[1,2]", "[4,8]") +
                  ",\"__metadata__\":{\"format\":\"pt\"},\"none\":" +
                  entry("F32", "[0,3]", "[8,8]") +
                  ",\"one\":" + entry("F32", "[]", "[8,12]") + "}   ",
              "abcdEFGHtail");
  const Safetensors found = read(file);
  ASSERT_EQ(found.tensors().size(), 4u);
  EXPECT_EQ(found.tensors()[0].name, "b");
  EXPECT_EQ(text_of(found.find("a")->bytes), "EFGH");
  EXPECT_EQ(found.find("a")->shape, (std::vector<int64_t>{1, 2}));
  EXPECT_TRUE(found.find("none")->bytes.empty());
  EXPECT_EQ(text_of(found.find("one")->bytes), "tail");
  EXPECT_EQ(found.find("absent"), nullptr);
  EXPECT_EQ(found.metadata().at("format"), "pt");
}

struct Checkpoint : ::testing::Test {
  const TempFolder folder;
  const std::string file = folder / "model.safetensors";
  const double weights[3] = {1.5, -2, 3};
  const int16_t table[2] = {7, -8};

  static Bytes bytes(const auto& array) {
    return {reinterpret_cast<const uint8_t*>(&array), sizeof(array)};
  }

  std::vector<StoredTensor> tensors() const {
    return {{"table", "I16", {2, 1}, bytes(table)},
            {"layers.0.attn.q_proj.weight", "F64", {3}, bytes(weights)}};
  }
};

TEST_F(Checkpoint, ComesBackFromTheDisk) {
  write_safetensors(file, tensors(), {{"step", "12"}});
  const Safetensors found(file);
  ASSERT_EQ(found.tensors().size(), 2u);
  const StoredTensor* const weight = found.find("layers.0.attn.q_proj.weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(text_of(weight->bytes), text_of(bytes(weights)));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(weight->bytes.data()) % 8, 0u);
  EXPECT_EQ(found.find("table")->shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(found.metadata().at("step"), "12");
}

TEST_F(Checkpoint, HasTheSameBytesInWhateverOrderItIsGiven) {
  auto reversed = tensors();
  std::swap(reversed[0], reversed[1]);
  write_safetensors(file, tensors());
  write_safetensors(folder / "other", reversed);
  EXPECT_EQ(contents(file), contents(folder / "other"));
}

TEST_F(Checkpoint, NeverLoadsWhenCutShortOrGrown) {
  write_safetensors(file, tensors(), {{"step", "12"}});
  const std::string whole = contents(file);
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_THROW(read(whole.substr(0, length)), DataError) << length;
  EXPECT_THAT(
      complaint(whole + "x"),
      HasSubstr("expected the end of the file after the last tensor, got 1 more"));
}

TEST_F(Checkpoint, WriterRefusesWhatTheReaderWould) {
  auto twice = tensors();
  twice[1] = twice[0];
  EXPECT_THROW(write_safetensors(file, twice), std::invalid_argument);
  auto short_bytes = tensors();
  short_bytes[0].shape = {3};
  EXPECT_THROW(write_safetensors(file, short_bytes), std::invalid_argument);
  auto unknown = tensors();
  unknown[0].dtype = "I17";
  EXPECT_THROW(write_safetensors(file, unknown), std::invalid_argument);
  EXPECT_EQ(folder.files(), 0);
}

TEST(Safetensors, ChecksTheHeadersLengthBeforeReadingIt) {
  EXPECT_THAT(complaint(""), HasSubstr("byte 0: expected 8 bytes of header length"));
  const std::string most(8, '\xff');
  EXPECT_THAT(
      complaint(most + "{}"),
      HasSubstr(
          "byte 0: expected a safetensors file, with a header of at most 2 bytes"));
  EXPECT_THAT(complaint(file_of("")), HasSubstr("begins with {"));
  EXPECT_THAT(complaint(file_of(" {}")), HasSubstr("begins with {"));
  EXPECT_THAT(complaint(file_of("{}\n")),
              HasSubstr("byte 10: expected a header that ends with }"));
  EXPECT_EQ(complaint(file_of("{}  ")), "(no error)");
}

TEST(Safetensors, ReadsTheHeaderStrictly) {
  const std::string a = entry("U8", "[1]", "[0,1]");
  EXPECT_THAT(complaint(file_of("{\"a\":" + a + ",\"a\":" + a + "}", "x")),
              HasSubstr("each key once"));
  EXPECT_THAT(complaint(file_of("{\"a\":[[[[]]]]}")), HasSubstr("in each other"));
  EXPECT_THAT(complaint(file_of("{\"a\":" + entry("U8", "[1.0]", "[0,1]") + "}", "x")),
              HasSubstr("a whole number"));
  EXPECT_THAT(
      complaint(file_of("{\"a\":{\"dtype\":\"U8\",\"shape\":[]}}")),
      HasSubstr("byte 9: expected for tensor \"a\": dtype, shape and data_offsets"));
  EXPECT_THAT(complaint(file_of("{\"__metadata__\":{\"a\":1}}")),
              HasSubstr("strings only"));
  EXPECT_THAT(complaint(file_of("{\"\":" + a + "}", "x")), HasSubstr("a name"));
}

struct Wrong {
  const char *dtype, *shape, *offsets, *expected;
};

TEST(Safetensors, RefusesEntriesThatDoNotHold) {
  const Wrong cases[] = {
      {"Q4", "[8]", "[0,8]", "a known dtype, got 'Q4'"},
      {"U8", "[-1]", "[0,8]", "not negative"},
      {"U8", "[8]", "[0,9]", "within the 8 bytes of data, got 0 to 9"},
      {"U8", "[8]", "[8,0]", "within the 8 bytes"},
      {"U8", "[0]", "[9,9]", "within the 8 bytes"},
      {"U8", "[8]", "[0,8,8]", "two data_offsets"},
      {"U8", "[8]", "[-1,7]", "two data_offsets"},
      {"U8", "[7]", "[0,8]", "data_offsets of 7 bytes for dtype and shape, got 8"},
      {"F32", "[8]", "[0,8]", "data_offsets of 32 bytes"},
      {"U8", "[4294967296,4294967296,8]", "[0,8]", "fits into memory"},
      {"U8", "[0,9223372036854775807,9]", "[0,0]", "fits into memory"},
      {"U8", "[18446744073709551615]", "[0,8]", "fits into memory"},
      {"U8", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,8]", "[0,8]", "at most 16 dimensions"},
      {"U8", "8", "[0,8]", "at most 16 dimensions"},
      {"U8", "[4]", "[4,8]", "offset 0, where the data before it ends, got 4"},
      {"U8", "[4]", "[0,4]", "the end of the file after the last tensor, got 4"},
  };
  for (const Wrong& wrong : cases)
    EXPECT_THAT(complaint(file_of(
                    "{\"a\":" + entry(wrong.dtype, wrong.shape, wrong.offsets) + "}",
                    "12345678")),
                HasSubstr(wrong.expected));
}

TEST(Safetensors, RefusesOverlap) {
  const std::string header = "{\"a\":" + entry("U8", "[5]", "[0,5]") +
                             ",\"b\":" + entry("U8", "[4]", "[4,8]") + "}";
  EXPECT_THAT(complaint(file_of(header, "12345678")),
              HasSubstr("for tensor \"b\": its data at offset 5"));
}

TEST(Safetensors, HasTheSameBytesInMemoryAndInAFile) {
  const TempFolder folder;
  const std::string numbers = "0123456789abcdef";
  const std::vector<StoredTensor> tensors = {{"b", "F32", {2, 2}, bytes_of(numbers)},
                                             {"a", "F64", {2}, bytes_of(numbers)}};
  write_safetensors(folder / "x", tensors, {{"key", "text"}});
  const LineVector<uint8_t> bytes = safetensors_bytes(tensors, {{"key", "text"}});
  EXPECT_EQ(contents(folder / "x"), text_of(bytes));
}

}  // namespace
}  // namespace lagwise::data
