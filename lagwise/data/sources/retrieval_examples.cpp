#include "lagwise/data/sources/retrieval_examples.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/path_kind.h"
#include "lagwise/data/sets/split_dealer.h"
#include "lagwise/data/sets/text_corpus.h"
#include "lagwise/data/sources/dice.h"
#include "lagwise/data/sources/lra_tables.h"

namespace lagwise::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kRetrievalStream = 0x5250;  // of the noise: this maker's own

std::vector<int32_t> tokens_of(Bytes text) { return {text.begin(), text.end()}; }

void read_pairs(const std::string& file, const std::function<std::string()>& split,
                const VisitExample& visit) {
  const int64_t rows = each_retrieval_row(
      file, [&](std::string_view first, std::string_view second, int label) {
        visit(split(), {label, tokens_of(bytes_of(first)), tokens_of(bytes_of(second))},
              -1);
      });
  if (rows == 0) throw DataError(file, -1, "pairs of texts, got none");
}

/// The table of a split: a name that ends in one of `endings`; empty: none.
std::string table_of_pairs(const std::string& folder,
                           const std::vector<std::string>& endings) {
  std::vector<std::string> found;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end;
       at.increment(failed))
    for (const std::string& ending : endings)
      if (at->path().string().ends_with(ending + ".tsv"))
        found.push_back(at->path().string());
  return found.empty() ? "" : *std::ranges::min_element(found);
}

/// Articles by split, with the files they lie in.
struct Articles {
  std::vector<TextFile> files;
  std::map<std::string, std::vector<Bytes>> splits;
};

bool has_wikitext(const std::string& path, const char* split) {
  const std::string stem = path + "/wiki." + split;
  return is_there(stem + ".tokens") || is_there(stem + ".raw");
}

Articles open_articles(const std::string& path) {
  Articles articles;
  for (const char* split : {"train", "valid", "test"})
    if (has_wikitext(path, split)) {
      articles.files.push_back(open_wikitext(path, split));
      articles.splits[split] = wikitext_articles(articles.files.back().bytes());
    }
  if (!articles.splits.empty()) return articles;
  articles.files = open_text(path);
  SplitDealer dealer(0.05, 0.05);
  for (const TextFile& file : articles.files)
    for (const Bytes article : documents_of(file))
      articles.splits[dealer.next()].push_back(article);
  return articles;
}

/// Makes pairs from the articles of one split.
class Pairs {
 public:
  Pairs(const PassageMaking& making, const std::vector<Bytes>& articles, int64_t part)
      : length_(static_cast<size_t>(making.length)), seed_(making.seed), part_(part) {
    for (const Bytes article : articles)
      if (article.size() >= 2 * length_) articles_.push_back(article);
  }
  size_t articles() const { return articles_.size(); }

  Example pair(int64_t index) const {
    Dice dice(Noise(seed_, kRetrievalStream, index).at({.layer = part_}));
    const int label = dice.pick(2);
    const auto many = static_cast<int>(articles_.size());
    const int first = dice.pick(many);
    if (label == 0) {
      const int second = (first + 1 + dice.pick(many - 1)) % many;
      return {label, passage(first, anywhere(first, dice)),
              passage(second, anywhere(second, dice))};
    }
    // Two places with at least a passage between them: the gaps before, between and
    // after share what is left over.
    const size_t spare = size(first) - 2 * length_;
    size_t a = place(dice, spare), b = place(dice, spare);
    if (a > b) std::swap(a, b);
    const bool turned = dice.chance(0.5);
    const auto early = passage(first, a), late = passage(first, b + length_);
    return turned ? Example{label, late, early} : Example{label, early, late};
  }

 private:
  size_t size(int article) const {
    return articles_[static_cast<size_t>(article)].size();
  }
  static size_t place(Dice& dice, size_t most) {
    return std::min(most,
                    static_cast<size_t>(dice.roll() * static_cast<double>(most + 1)));
  }
  size_t anywhere(int article, Dice& dice) const {
    return place(dice, size(article) - length_);
  }
  std::vector<int32_t> passage(int article, size_t at) const {
    return tokens_of(articles_[static_cast<size_t>(article)].subspan(at, length_));
  }

  size_t length_;
  uint64_t seed_;
  int64_t part_;
  std::vector<Bytes> articles_;
};

}  // namespace

bool is_retrieval_table(const std::string& path) {
  return is_folder(path) ? !table_of_pairs(path, {""}).empty() : path.ends_with(".tsv");
}

void read_retrieval_examples(const std::string& path, const VisitExample& visit) {
  if (!is_folder(path)) {
    SplitDealer dealer(0.1, 0.1);
    return read_pairs(
        path, [&] { return dealer.next(); }, visit);
  }
  const std::string train = table_of_pairs(path, {"train"});
  if (train.empty())
    throw DataError(path, -1, "a table whose name ends in train.tsv in the folder");
  read_pairs(
      train, [] { return "train"; }, visit);
  if (const auto valid = table_of_pairs(path, {"eval", "valid", "val", "dev"});
      !valid.empty())
    read_pairs(
        valid, [] { return "valid"; }, visit);
  if (const auto test = table_of_pairs(path, {"test"}); !test.empty())
    read_pairs(
        test, [] { return "test"; }, visit);
}

void make_passage_examples(const PassageMaking& making, const VisitExample& visit) {
  const Articles articles = open_articles(making.path);
  const std::pair<const char*, int64_t> wanted[] = {
      {"train", making.train}, {"valid", making.valid}, {"test", making.test}};
  int64_t all = 0, made = 0, part = 0;
  for (const auto& [split, many] : wanted)
    if (articles.splits.contains(split)) all += many;
  for (const auto& [split, many] : wanted) {
    ++part;
    if (!articles.splits.contains(split) || many == 0) continue;
    const Pairs pairs(making, articles.splits.at(split), part);
    if (pairs.articles() < 2)
      throw DataError(making.path, -1,
                      "two articles of " + std::to_string(2 * making.length) +
                          " bytes or more in the split " + split + ", got " +
                          std::to_string(pairs.articles()));
    for (int64_t i = 0; i < many; ++i)
      visit(split, pairs.pair(i),
            static_cast<double>(++made) / static_cast<double>(all));
  }
}

}  // namespace lagwise::data
