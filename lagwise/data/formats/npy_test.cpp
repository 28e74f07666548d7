#include "lagwise/data/formats/npy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "lagwise/core/errors.h"

namespace lagwise::data {
namespace {

const std::string kSquare =
    "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }";

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// A file of version 1 or 2 with this header.
std::string npy(const std::string& header, const std::string& elements,
                char version = 1) {
  std::string file = std::string("\x93NUMPY") + version + '\0';
  for (size_t i = 0; i < (version == 1 ? 2u : 4u); ++i)
    file += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return file + header + elements;
}

// What is wrong with a file, and where: "byte 17: ...".
std::string fault(const std::string& contents) {
  try {
    parse_npy(contents, "x.npy");
  } catch (const DataError& error) {
    EXPECT_EQ(error.file(), "x.npy");
    return std::string(error.what()).substr(std::strlen("x.npy, "));
  }
  return "none";
}

std::string header_fault(const std::string& header) { return fault(npy(header, "")); }

TEST(Npy, ReadsBothVersions) {
  const std::vector<double> values = {1.5, -2, 3, 1e300};
  for (const char version : {char{1}, char{2}}) {
    const NpyArray got = parse_npy(npy(kSquare, bytes_of(values), version), "x");
    EXPECT_EQ(got.type, NpyType::float64);
    EXPECT_EQ(got.shape, (std::vector<int64_t>{2, 2}));
    EXPECT_EQ(got.bytes, bytes_of(values));
    EXPECT_EQ(got.numel(), 4);
  }
}

TEST(Npy, ReadsEveryTypeItNames) {
  const std::vector<std::pair<std::string, std::string>> types = {
      {"<f8", "float64"}, {"<f4", "float32"}, {"<i8", "int64"},
      {"<i4", "int32"},   {"|b1", "bool"},
  };
  for (const auto& [descr, name] : types) {
    const size_t size = static_cast<size_t>(descr[2] - '0');
    const NpyArray got = parse_npy(
        npy("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (3,), }\n",
            std::string(3 * size, 'x')),
        "x");
    EXPECT_EQ(name_of(got.type), name);
    EXPECT_EQ(got.item_size(), static_cast<int64_t>(size));
  }
}

TEST(Npy, ReadsColumnsAsRows) {
  // [2, 3, 2] with element (i, j, k) = 100 i + 10 j + k, the first index fastest.
  std::vector<double> stored, want;
  for (int k = 0; k < 2; ++k)
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 2; ++i) stored.push_back(100 * i + 10 * j + k);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 2; ++k) want.push_back(100 * i + 10 * j + k);
  const std::string header = "{'descr': '<f8', 'fortran_order': True, 'shape': ";
  EXPECT_EQ(parse_npy(npy(header + "(2, 3, 2), }", bytes_of(stored)), "x").bytes,
            bytes_of(want));
  EXPECT_EQ(parse_npy(npy(header + "(12,), }", bytes_of(stored)), "x").bytes,
            bytes_of(stored));
  EXPECT_EQ(parse_npy(npy(header + "(3, 0, 2), }", ""), "x").bytes, "");
}

TEST(Npy, ReadsKeysInAnyOrderANumberAndAnEmptyArray) {
  const NpyArray number = parse_npy(
      npy("{\"shape\": (), 'fortran_order':False,'descr':'<i4'}", "abcd"), "x");
  EXPECT_TRUE(number.shape.empty());
  EXPECT_EQ(number.numel(), 1);
  const NpyArray empty = parse_npy(
      npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 0, 2), }", ""), "x");
  EXPECT_EQ(empty.numel(), 0);
}

TEST(Npy, NamesTheByteOfAFaultBeforeTheHeader) {
  EXPECT_EQ(fault(""), "byte 0: expected the magic \\x93NUMPY");
  EXPECT_EQ(fault("\x93NUMPX" + std::string(90, '\0')),
            "byte 0: expected the magic \\x93NUMPY");
  EXPECT_EQ(fault("\x93NUMPY"), "byte 6: expected a version");
  EXPECT_EQ(fault(npy(kSquare, "", 3)), "byte 6: expected version 1.0 or 2.0");
  EXPECT_EQ(fault(npy("", "", 1).substr(0, 9)),
            "byte 8: expected the length of the header");
  EXPECT_EQ(fault(npy(kSquare, "").substr(0, 40)),
            "byte 8: expected a header that ends inside the file");
}

TEST(Npy, NamesTheByteOfAFaultInTheHeader) {
  EXPECT_EQ(header_fault("x"), "byte 10: expected '{' to open the header");
  EXPECT_EQ(header_fault("{1"), "byte 11: expected a quoted key");
  EXPECT_EQ(header_fault("{'descr"), "byte 11: expected a closing quote");
  EXPECT_EQ(header_fault("{'descr' 1"), "byte 19: expected ':' after a key");
  EXPECT_EQ(header_fault("{'descr': '>f8'"),
            "byte 20: expected one of the types '<f8', '<f4', '<i8', '<i4', '|b1'");
  EXPECT_EQ(header_fault("{'descr': '<f8' 'shape'"),
            "byte 26: expected ',' or '}' after an entry");
  EXPECT_EQ(header_fault("{'size': 1"),
            "byte 11: expected 'descr', 'fortran_order' and 'shape', each once");
  EXPECT_EQ(header_fault("{'descr': '<f8', 'descr': '<f8'"),
            "byte 27: expected 'descr', 'fortran_order' and 'shape', each once");
  EXPECT_EQ(header_fault("{'fortran_order': Maybe"),
            "byte 28: expected fortran_order True or False");
  EXPECT_EQ(header_fault("{'descr': '<f8'}"),
            "byte 26: expected a header with 'descr', 'fortran_order' and 'shape'");
  EXPECT_EQ(header_fault(kSquare + "x"),
            "byte 69: expected nothing but blanks after the header");
}

TEST(Npy, NamesTheByteOfAFaultInTheShape) {
  EXPECT_EQ(header_fault("{'shape': 3"), "byte 20: expected '(' to open a shape");
  EXPECT_EQ(header_fault("{'shape': (-1"), "byte 21: expected a whole number");
  EXPECT_EQ(header_fault("{'shape': (3)"), "byte 22: expected ',' after a length");
  EXPECT_EQ(header_fault("{'shape': (3 4)"), "byte 23: expected ',' after a length");
  EXPECT_EQ(header_fault("{'shape': (9223372036854775808,)"),
            "byte 21: expected a length below 2^63");
  std::string many = "{'shape': (";
  for (int i = 0; i < 33; ++i) many += "1,";
  EXPECT_EQ(header_fault(many), "byte 85: expected at most 32 axes");
}

TEST(Npy, TakesNoMemoryForElementsThatAreNotThere) {
  const std::string huge =
      "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000), }";
  EXPECT_EQ(fault(npy(huge, "12345678")),
            "byte 81: expected 8000000000000 bytes of elements, found 8");
  const std::string beyond =
      "{'descr': '<f8', 'fortran_order': False, 'shape': (4000000000, 4000000000), }";
  EXPECT_EQ(fault(npy(beyond, "")),
            "byte 10: expected a shape of fewer than 2^63 bytes");
  EXPECT_EQ(fault(npy(kSquare, std::string(33, 'x'))),
            "byte 69: expected 32 bytes of elements, found 33");
}

TEST(Npy, ReadsAFileAndRefusesOneThatIsAbsentOrTooLong) {
  const std::string path = ::testing::TempDir() + "npy_test.npy";
  std::ofstream(path, std::ios::binary) << npy(kSquare, std::string(32, 'x'));
  EXPECT_EQ(read_npy(path).bytes, std::string(32, 'x'));
  EXPECT_THROW(read_npy(path, 100), DataError);
  std::filesystem::remove(path);
  EXPECT_THROW(read_npy(path), DataError);
  EXPECT_THROW(read_npy(::testing::TempDir()), DataError);
}

}  // namespace
}  // namespace lagwise::data
