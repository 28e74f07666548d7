#include "lagwise/data/formats/npy.h"

#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "lagwise/core/errors.h"

namespace lagwise::data {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr size_t kMostAxes = 32;  // NumPy's own limit

struct TypeRow {
  NpyType type;
  std::string_view descr, name;
  int64_t size;
};
constexpr TypeRow kTypes[] = {
    {NpyType::float64, "<f8", "float64", 8}, {NpyType::float32, "<f4", "float32", 4},
    {NpyType::int64, "<i8", "int64", 8},     {NpyType::int32, "<i4", "int32", 4},
    {NpyType::boolean, "|b1", "bool", 1},
};

const TypeRow& row_of(NpyType type) { return kTypes[static_cast<int>(type)]; }

/// The header, a literal of Python: a cursor that knows its place in the file.
class Header {
 public:
  Header(std::string_view text, size_t offset, const std::string& file)
      : text_(text), offset_(offset), file_(file) {}

  /// {'descr': .., 'fortran_order': .., 'shape': ..}, each once, in any order.
  NpyArray read() {
    expect('{', "'{' to open the header");
    while (!take('}')) {
      read_entry();
      if (!take(',') && peek() != '}') fail("',' or '}' after an entry");
    }
    skip_blanks();
    if (at_ != text_.size()) fail("nothing but blanks after the header");
    if (!type_ || !by_column_ || !shape_)
      fail("a header with 'descr', 'fortran_order' and 'shape'");
    NpyArray array;
    array.type = *type_;
    array.shape = std::move(*shape_);
    return array;
  }

  /// Whether the first index runs fastest: NumPy's Fortran order.
  bool by_column() const { return by_column_.value(); }

 private:
  void read_entry() {
    const size_t begin = at_;
    const std::string_view key = quoted("a quoted key");
    expect(':', "':' after a key");
    if (key == "descr" && !type_) {
      read_type();
    } else if (key == "fortran_order" && !by_column_) {
      read_order();
    } else if (key == "shape" && !shape_) {
      read_shape();
    } else {
      at_ = begin;
      skip_blanks();
      fail("'descr', 'fortran_order' and 'shape', each once");
    }
  }

  void read_type() {
    skip_blanks();
    const size_t begin = at_;
    const std::string_view descr = quoted("a quoted type such as '<f8'");
    for (const TypeRow& row : kTypes)
      if (row.descr == descr) type_ = row.type;
    if (type_) return;
    at_ = begin;
    fail("one of the types '<f8', '<f4', '<i8', '<i4', '|b1'");
  }

  void read_order() {
    skip_blanks();
    const std::string_view rest = text_.substr(at_);
    if (!rest.starts_with("False") && !rest.starts_with("True"))
      fail("fortran_order True or False");
    by_column_ = rest.starts_with("True");
    at_ += *by_column_ ? 4 : 5;
  }

  void read_shape() {
    std::vector<int64_t> shape;
    expect('(', "'(' to open a shape");
    while (!take(')')) {
      if (shape.size() == kMostAxes) fail("at most 32 axes");
      shape.push_back(whole_number());
      const bool comma = take(',');
      if (!comma && (peek() != ')' || shape.size() == 1))
        fail("',' after a length");  // (7) is no tuple in Python, (7,) is
    }
    shape_ = std::move(shape);
  }

  int64_t whole_number() {
    skip_blanks();
    const size_t begin = at_;
    int64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      const int digit = text_[at_] - '0';
      if (value > (std::numeric_limits<int64_t>::max() - digit) / 10) {
        at_ = begin;
        fail("a length below 2^63");
      }
      value = value * 10 + digit;
    }
    if (at_ == begin) fail("a whole number");
    return value;
  }

  std::string_view quoted(const char* what) {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail(what);
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a closing quote");
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return inside;
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  char peek() {
    skip_blanks();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char c, const char* what) {
    if (!take(c)) fail(what);
  }
  [[noreturn]] void fail(const char* expected) const {
    throw DataError(file_, static_cast<int64_t>(offset_ + at_), expected);
  }

  std::string_view text_;
  size_t offset_;  // of the text in the file
  const std::string& file_;
  size_t at_ = 0;
  std::optional<NpyType> type_;
  std::optional<bool> by_column_;
  std::optional<std::vector<int64_t>> shape_;
};

/// The bytes an array needs, or nothing where they cannot be counted.
std::optional<int64_t> byte_count(const NpyArray& array) {
  int64_t bytes = array.item_size();
  for (const int64_t length : array.shape)
    if (__builtin_mul_overflow(bytes, length, &bytes)) return std::nullopt;
  return bytes;
}

/// A little-endian number of `width` bytes.
size_t little_endian(std::string_view bytes, size_t at, size_t width) {
  size_t value = 0;
  for (size_t i = 0; i < width; ++i)
    value |= static_cast<size_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return value;
}

/// Elements whose first index runs fastest, with the last one running fastest.
std::string row_by_row(std::string_view elements, const NpyArray& array) {
  const auto item = static_cast<size_t>(array.item_size());
  std::vector<int64_t> index(array.shape.size(), 0), step(array.shape.size(), 1);
  for (size_t axis = 1; axis < step.size(); ++axis)
    step[axis] = step[axis - 1] * array.shape[axis - 1];
  std::string rows;
  rows.reserve(elements.size());
  for (int64_t i = 0, from = 0; i < array.numel(); ++i) {
    rows += elements.substr(static_cast<size_t>(from) * item, item);
    for (size_t axis = index.size(); axis-- > 0;) {
      from += step[axis];
      if (++index[axis] < array.shape[axis]) break;
      from -= index[axis] * step[axis];
      index[axis] = 0;
    }
  }
  return rows;
}

}  // namespace

std::string_view name_of(NpyType type) { return row_of(type).name; }

int64_t NpyArray::item_size() const { return row_of(type).size; }

int64_t NpyArray::numel() const {
  int64_t product = 1;
  for (const int64_t length : shape) product *= length;
  return product;
}

NpyArray parse_npy(std::string_view contents, const std::string& file) {
  const auto refuse = [&](size_t offset, const std::string& expected) {
    throw DataError(file, static_cast<int64_t>(offset), expected);
  };
  if (!contents.starts_with(kNpyMagic)) refuse(0, "the magic \\x93NUMPY");
  const size_t version = kNpyMagic.size(), length_at = version + 2;
  if (contents.size() < length_at) refuse(version, "a version");
  const char major = contents[version];
  if ((major != 1 && major != 2) || contents[version + 1] != 0)
    refuse(version, "version 1.0 or 2.0");
  const size_t width = major == 1 ? 2 : 4, begin = length_at + width;
  if (contents.size() < begin) refuse(length_at, "the length of the header");
  const size_t length = little_endian(contents, length_at, width);
  if (length > contents.size() - begin)
    refuse(length_at, "a header that ends inside the file");

  Header header(contents.substr(begin, length), begin, file);
  NpyArray array = header.read();
  const std::string_view elements = contents.substr(begin + length);
  const std::optional<int64_t> bytes = byte_count(array);
  if (!bytes) refuse(begin, "a shape of fewer than 2^63 bytes");
  if (bytes.value() != static_cast<int64_t>(elements.size()))
    refuse(begin + length, std::to_string(bytes.value()) +
                               " bytes of elements, found " +
                               std::to_string(elements.size()));
  array.bytes =
      header.by_column() ? row_by_row(elements, array) : std::string(elements);
  return array;
}

NpyArray read_npy(const std::string& file, int64_t longest) {
  std::error_code failure;
  const auto size = std::filesystem::file_size(file, failure);
  if (failure) throw DataError(file, -1, "a readable file: " + failure.message());
  if (size > static_cast<uintmax_t>(longest))
    throw DataError(file, -1,
                    "a file of at most " + std::to_string(longest) + " bytes, found " +
                        std::to_string(size));
  std::string contents(static_cast<size_t>(size), '\0');
  std::ifstream stream(file, std::ios::binary);
  if (!stream.read(contents.data(), static_cast<std::streamsize>(contents.size())))
    throw DataError(file, stream.gcount(),
                    "to read " + std::to_string(size) + " bytes");
  return parse_npy(contents, file);
}

}  // namespace lagwise::data
