#include "lagwise/core/layer_texts.h"

#include <charconv>
#include <stdexcept>

#include "lagwise/core/grid.h"

namespace lagwise {
namespace {

struct LayerText {
  int64_t count = 0;  // 0: none was written
  std::string spec;
};

[[noreturn]] void refuse_layers(std::string_view what, const std::string& why) {
  throw std::invalid_argument(std::string(what) + ": expected " + why);
}

/// "3*linear", with spaces anywhere around the star.
LayerText read_layer_text(std::string_view what, const std::string& item) {
  constexpr int64_t kMost = 100000;
  const size_t star = item.find('*');
  if (star == item.npos || item.find_first_not_of("0123456789 ") < star)
    return {0, item};
  LayerText read;
  const char* end = item.data() + star;
  const auto [stop, error] = std::from_chars(item.data(), end, read.count);
  const size_t spec = item.find_first_not_of(' ', star + 1);
  const bool whole =
      error == std::errc() &&
      item.find_first_not_of(' ', static_cast<size_t>(stop - item.data())) == star;
  if (!whole || read.count < 1 || read.count > kMost || spec == item.npos)
    refuse_layers(what, "a count from 1 to " + std::to_string(kMost) +
                            " and a text around '*', got '" + item + "'");
  read.spec = item.substr(spec);
  return read;
}

std::vector<LayerText> read_layer_texts(std::string_view what, std::string_view text) {
  const char mark = text.find('|') == text.npos ? ';' : '|';
  std::vector<LayerText> all;
  for (const std::string& item : split_specs(what, text, mark))
    all.push_back(read_layer_text(what, item));
  return all;
}

}  // namespace

std::vector<std::string> texts_by_layer(std::string_view what, std::string_view text,
                                        int64_t layers) {
  const std::vector<LayerText> read = read_layer_texts(what, text);
  const auto count = static_cast<size_t>(layers);
  if (read.size() == 1 && read[0].count == 0)
    return std::vector<std::string>(count, read[0].spec);
  std::vector<std::string> specs;
  for (const LayerText& one : read)
    specs.insert(specs.end(), one.count > 0 ? static_cast<size_t>(one.count) : 1,
                 one.spec);
  if (specs.size() != count)
    refuse_layers(what, "one text for all layers, or one for each of model.layers = " +
                            std::to_string(layers) + ", got " +
                            std::to_string(specs.size()) + " in '" + std::string(text) +
                            "'");
  return specs;
}

std::string rewrite_layer_texts(
    std::string_view what, std::string_view text,
    const std::function<std::string(const std::string&)>& rewrite) {
  std::string all;
  for (const LayerText& one : read_layer_texts(what, text)) {
    if (!all.empty()) all += "; ";
    if (one.count > 0) all += std::to_string(one.count) + "*";
    all += rewrite(one.spec);
  }
  return all;
}

}  // namespace lagwise
