#include "lagwise/data/sources/acl_imdb.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "lagwise/core/errors.h"

namespace lagwise::data {
namespace {

namespace fs = std::filesystem;

template <class Number>
bool whole(std::string_view text, Number& value) {
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0;
}

Review review_of(const fs::path& file, int label) {
  const std::string stem = file.stem().string();
  const size_t bar = stem.find('_');
  Review review{file.string(), 0, 0, label};
  const bool good = bar != std::string::npos &&
                    whole(std::string_view(stem).substr(0, bar), review.id) &&
                    whole(std::string_view(stem).substr(bar + 1), review.rating) &&
                    review.rating >= 1 && review.rating <= 10;
  if (!good) throw DataError(file.string(), -1, "a name like 12_7.txt: id and rating");
  return review;
}

}  // namespace

std::vector<Review> list_acl_imdb(const std::string& folder, const std::string& split) {
  std::vector<Review> reviews;
  for (const int label : {0, 1}) {
    const fs::path part = fs::path(folder) / split / (label == 1 ? "pos" : "neg");
    std::error_code failed;
    const size_t before = reviews.size();
    for (fs::directory_iterator at(part, failed), end; !failed && at != end;
         at.increment(failed))
      if (at->path().extension() == ".txt")
        reviews.push_back(review_of(at->path(), label));
    if (failed)
      throw DataError(part.string(), -1, "a folder of reviews: " + failed.message());
    if (reviews.size() == before)
      throw DataError(part.string(), -1, "reviews as .txt files, got none");
  }
  std::sort(reviews.begin(), reviews.end(), [](const Review& a, const Review& b) {
    if (a.label != b.label) return a.label < b.label;
    return a.id != b.id ? a.id < b.id : a.file < b.file;
  });
  return reviews;
}

}  // namespace lagwise::data
