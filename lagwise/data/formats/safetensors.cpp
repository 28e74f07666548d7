#include "lagwise/data/formats/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "lagwise/data/formats/atomic_file.h"
#include "lagwise/data/formats/byte_cursor.h"
#include "lagwise/data/formats/fnv1a.h"
#include "lagwise/data/formats/strict_json.h"

namespace lagwise::data {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxHeader = uint64_t{16} << 20;
constexpr size_t kLengthBytes = 8, kMaxDimensions = 16, kMaxName = 1024;
constexpr size_t kLine = 64;  // of a cache
constexpr const char* kMetadata = "__metadata__";

struct Dtype {
  std::string_view name;
  size_t size;
};
constexpr Dtype kDtypes[] = {{"F64", 8},     {"I64", 8}, {"U64", 8},  {"F32", 4},
                             {"I32", 4},     {"U32", 4}, {"F16", 2},  {"BF16", 2},
                             {"I16", 2},     {"U16", 2}, {"BOOL", 1}, {"F8_E4M3", 1},
                             {"F8_E5M2", 1}, {"I8", 1},  {"U8", 1}};

struct Extent {
  uint64_t begin, end;  // in the data
};

/// Turns the header's entries into tensors. Messages point at the entry's name.
class HeaderReader {
 public:
  HeaderReader(const std::string& file, Bytes header, Bytes data)
      : file_(file), header_(header), data_(data) {}

  StoredTensor tensor(const std::string& name, const Json& entry) {
    at_ = name;
    require(!name.empty(), "a name");
    require(entry.is_object() && entry.size() == 3 && entry.contains("dtype") &&
                entry.contains("shape") && entry.contains("data_offsets"),
            "dtype, shape and data_offsets");
    StoredTensor tensor{name, {}, {}, {}};
    require(entry["dtype"].is_string(), "dtype as a string");
    tensor.dtype = entry["dtype"].get<std::string>();
    const size_t width = dtype_size(tensor.dtype);
    require(width > 0, "a known dtype, got '" + printable(tensor.dtype) + "'");
    const uint64_t bytes = shape(entry["shape"], width, tensor.shape);
    const Extent extent = offsets(entry["data_offsets"]);
    require(extent.end - extent.begin == bytes,
            "data_offsets of " + std::to_string(bytes) +
                " bytes for dtype and shape, got " +
                std::to_string(extent.end - extent.begin));
    tensor.bytes = data_.subspan(extent.begin, bytes);
    return tensor;
  }

  std::map<std::string, std::string> metadata(const Json& entry) {
    at_ = kMetadata;
    require(entry.is_object(), "an object of strings");
    std::map<std::string, std::string> texts;
    for (const auto& [key, value] : entry.items()) {
      require(value.is_string(), "strings only");
      texts[key] = value.get<std::string>();
    }
    return texts;
  }

  /// No gap, no overlap, nothing left over: else bytes could hide in the file, or
  /// one tensor's bytes could be another's.
  void check_cover(const std::vector<StoredTensor>& tensors) {
    const uint8_t* next = data_.data();
    for (const StoredTensor& tensor : tensors) {
      at_ = tensor.name;
      require(tensor.bytes.data() == next,
              "its data at offset " + std::to_string(next - data_.data()) +
                  ", where the data before it ends, got " +
                  std::to_string(tensor.bytes.data() - data_.data()));
      next += tensor.bytes.size();
    }
    const auto covered = static_cast<size_t>(next - data_.data());
    if (covered != data_.size())
      throw DataError(file_,
                      static_cast<int64_t>(kLengthBytes + header_.size() + covered),
                      "the end of the file after the last tensor, got " +
                          std::to_string(data_.size() - covered) + " more bytes");
  }

 private:
  void require(bool holds, const std::string& expected) const {
    if (holds) return;
    const std::string quoted = Json(at_).dump();
    const size_t found = text_of(header_).find(quoted);  // may be spelled with escapes
    const size_t place = kLengthBytes + (found == std::string_view::npos ? 0 : found);
    throw DataError(file_, static_cast<int64_t>(place),
                    "for tensor " + quoted + ": " + expected);
  }

  static std::string printable(std::string text) {
    text.resize(std::min<size_t>(text.size(), 20));
    for (char& c : text)
      if (c < 0x20 || c == 0x7f) c = '?';
    return text;
  }

  // Bytes of the whole tensor. A zero among the dimensions does not excuse the
  // others: their product must not overflow either.
  uint64_t shape(const Json& list, uint64_t width, std::vector<int64_t>& shape) const {
    require(list.is_array() && list.size() <= kMaxDimensions,
            "a shape of at most " + std::to_string(kMaxDimensions) + " dimensions");
    uint64_t bytes = width;
    bool empty = false;
    for (const Json& dimension : list) {
      require(dimension.is_number_unsigned(), "dimensions that are not negative");
      const uint64_t size = dimension.get<uint64_t>();
      shape.push_back(static_cast<int64_t>(size));
      empty |= size == 0;
      require(size <= INT64_MAX &&
                  !__builtin_mul_overflow(bytes, size ? size : 1, &bytes) &&
                  bytes <= INT64_MAX,
              "a shape that fits into memory");
    }
    return empty ? 0 : bytes;
  }

  Extent offsets(const Json& pair) const {
    require(pair.is_array() && pair.size() == 2 && pair[0].is_number_unsigned() &&
                pair[1].is_number_unsigned(),
            "two data_offsets that are not negative");
    const Extent extent{pair[0].get<uint64_t>(), pair[1].get<uint64_t>()};
    require(extent.begin <= extent.end && extent.end <= data_.size(),
            "data_offsets within the " + std::to_string(data_.size()) +
                " bytes of data, got " + std::to_string(extent.begin) + " to " +
                std::to_string(extent.end));
    return extent;
  }

  const std::string& file_;
  Bytes header_, data_;
  std::string_view at_;
};

// The header as JSON, after the checks that need no understanding of it.
Bytes header_of(ByteCursor& cursor) {
  const auto length = cursor.little_endian<uint64_t>("header length");
  if (length > kMaxHeader || length > cursor.left())
    cursor.fail_at(0,
                   "a safetensors file, with a header of at most " +
                       std::to_string(std::min<uint64_t>(kMaxHeader, cursor.left())) +
                       " bytes, got " + std::to_string(length));
  const size_t start = cursor.offset();
  const Bytes header = cursor.take(length, "header");
  if (header.empty() || header.front() != '{')
    cursor.fail_at(start, "a header that begins with {");
  const size_t last = text_of(header).find_last_not_of(' ');
  if (header[last] != '}')
    cursor.fail_at(start + last, "a header that ends with } and spaces");
  return header;
}

uint64_t checked_size(const StoredTensor& tensor) {
  const auto refuse = [&](const std::string& what) {
    throw std::invalid_argument("safetensors: " + what + " for '" + tensor.name + "'");
  };
  uint64_t bytes = dtype_size(tensor.dtype);
  if (bytes == 0) refuse("expected a known dtype, got '" + tensor.dtype + "'");
  if (tensor.shape.size() > kMaxDimensions) refuse("expected at most 16 dimensions");
  if (tensor.name.empty() || tensor.name.size() > kMaxName || tensor.name == kMetadata)
    refuse("expected a name of 1 to 1024 bytes");
  for (const int64_t size : tensor.shape)
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes))
      refuse("expected a shape that fits into memory");
  if (bytes != tensor.bytes.size())
    refuse("expected " + std::to_string(bytes) + " bytes, got " +
           std::to_string(tensor.bytes.size()));
  return bytes;
}

}  // namespace

size_t dtype_size(std::string_view dtype) {
  for (const Dtype& known : kDtypes)
    if (known.name == dtype) return known.size;
  return 0;
}

Safetensors::Safetensors(const std::string& file) : mapped_(file) {
  read(file, mapped_->bytes());
}

Safetensors::Safetensors(const std::string& name, Bytes bytes) { read(name, bytes); }

void Safetensors::read(const std::string& file, Bytes bytes) {
  ByteCursor cursor(file, bytes);
  const Bytes header = header_of(cursor);
  const Json entries = parse_strict_json(file, kLengthBytes, header);
  HeaderReader reader(file, header, cursor.take(cursor.left(), "data"));
  for (const auto& [name, entry] : entries.items()) {
    if (name == kMetadata)
      metadata_ = reader.metadata(entry);
    else
      tensors_.push_back(reader.tensor(name, entry));
  }
  std::sort(tensors_.begin(), tensors_.end(), [](const auto& a, const auto& b) {
    return std::pair(a.bytes.data(), a.bytes.size()) <
           std::pair(b.bytes.data(), b.bytes.size());
  });
  reader.check_cover(tensors_);
}

const StoredTensor* Safetensors::find(std::string_view name) const {
  for (const StoredTensor& tensor : tensors_)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

namespace {

/// Length and header of a file of these tensors, which are put into the order of their
/// data. The header is padded with spaces to whole lines of the cache, and tensors that
/// fill such lines come first: mapped, they begin with one, so that no vector of numbers
/// lies across two. The others follow, the widest numbers first, each aligned to them.
std::string head_of(std::vector<StoredTensor>& tensors,
                    const std::map<std::string, std::string>& metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    const auto order = [](const StoredTensor& x) {
      const bool part_of_a_line = x.bytes.size() % kLine != 0;
      const auto width = static_cast<int64_t>(dtype_size(x.dtype));
      return std::tuple(part_of_a_line, part_of_a_line ? -width : 0, x.name);
    };
    return order(a) < order(b);
  });
  nlohmann::ordered_json header = Json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  uint64_t end = 0;
  for (const StoredTensor& tensor : tensors) {
    const uint64_t begin = end;
    end += checked_size(tensor);
    if (header.contains(tensor.name))
      throw std::invalid_argument("safetensors: expected each name once, got '" +
                                  tensor.name + "' twice");
    header[tensor.name] = {{"dtype", tensor.dtype},
                           {"shape", tensor.shape},
                           {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  const size_t head = (kLengthBytes + text.size() + kLine - 1) / kLine * kLine;
  text.resize(head - kLengthBytes, ' ');
  if (text.size() > kMaxHeader)
    throw std::invalid_argument("safetensors: expected a header of at most 16 MB");
  std::string length(kLengthBytes, '\0');
  for (size_t i = 0; i < kLengthBytes; ++i)
    length[i] = static_cast<char>(static_cast<uint8_t>(uint64_t{text.size()} >> 8 * i));
  return length + text;
}

}  // namespace

uint64_t write_safetensors(const std::string& file, std::vector<StoredTensor> tensors,
                           const std::map<std::string, std::string>& metadata,
                           FileCalls calls) {
  const std::string head = head_of(tensors, metadata);
  AtomicFile out(file, std::move(calls));
  uint64_t hash = kFnv1aStart;
  const auto put = [&](Bytes bytes) {
    out.write(bytes);
    hash = fnv1a(bytes, hash);
  };
  put(bytes_of(head));
  for (const StoredTensor& tensor : tensors) put(tensor.bytes);
  out.commit();
  return hash;
}

LineVector<uint8_t> safetensors_bytes(
    std::vector<StoredTensor> tensors,
    const std::map<std::string, std::string>& metadata) {
  const std::string head = head_of(tensors, metadata);
  LineVector<uint8_t> all(head.begin(), head.end());
  for (const StoredTensor& tensor : tensors)
    all.insert(all.end(), tensor.bytes.begin(), tensor.bytes.end());
  return all;
}

}  // namespace lagwise::data
